"""Write to a standard stream without blocking on its reader, such as a stopped pager."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed

FULL_SIZE = 256 * 1024
"""Number of queued bytes at which the writer is full; it is ready again at half of it."""


class StreamWriter:
    """
    Writes in its own thread, because non-blocking mode would affect other processes that share the descriptor.

    :param reactor: runs the callbacks.
    :param descriptor: descriptor of the stream.
    :param on_full: called with whether the writer is full.
    :param on_error: called when the stream can no longer be written; queued data is dropped.
    """

    def __init__(
        self, reactor: Any, descriptor: int, on_full: Callable[[bool], None], on_error: Callable[[OSError], None]
    ) -> None:
        self._reactor, self._descriptor = reactor, descriptor
        self._on_full, self._on_error = on_full, on_error
        self._change = threading.Condition()
        self._pieces: list[bytes] = []
        self._thread: threading.Thread | None = None
        self._size = 0
        self._full = self._broken = False
        self._written: Deferred[None] | None = None

    def write(self, data: bytes) -> None:
        """Write, after queued data."""
        if self._broken or not data:
            return
        if self._thread is None:  # a daemon thread, so that a blocked one does not delay the process's end
            self._thread = threading.Thread(target=self._run, name=f"writes to {self._descriptor}", daemon=True)
            self._thread.start()
        with self._change:
            self._pieces.append(data)
            self._change.notify()
        self._size += len(data)
        if self._size >= FULL_SIZE and not self._full:
            self._full = True
            self._on_full(True)

    def written(self) -> Deferred[None]:
        """:returns: fires when the queue is empty. Call it once at a time."""
        if not self._size:
            return succeed(None)
        self._written = Deferred()
        return self._written

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._pieces)
                data, self._pieces = b"".join(self._pieces), []
            size, error = len(data), None
            try:
                while data:
                    data = self._write(data)
            except OSError as e:
                error = e
            self._reactor.callFromThread(self._done, size, error)
            if error is not None:
                return

    def _write(self, data: bytes) -> bytes:
        """:returns: the remaining data."""
        try:
            return data[os.write(self._descriptor, data) :]
        except BlockingIOError:  # another process with the descriptor made it non-blocking
            select.select((), (self._descriptor,), ())
            return data

    def _done(self, size: int, error: OSError | None) -> None:
        self._size -= size
        if error is not None:
            self._broken, self._size = True, 0
            self._on_error(error)
        if self._full and self._size < FULL_SIZE // 2:
            self._full = False
            self._on_full(False)
        if not self._size and self._written is not None:
            written, self._written = self._written, None
            if not written.called:
                written.callback(None)
