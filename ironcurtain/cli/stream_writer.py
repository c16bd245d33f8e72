"""Write to a standard stream without waiting for whoever reads it, such as a pager that somebody has stopped."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed

FULL_SIZE = 256 * 1024
"""So many bytes that wait are enough; then no more should come until half of them are written."""


class StreamWriter:
    """
    Writes in a thread of its own: a descriptor that others use as well cannot be told not to block.

    :param reactor: runs what is told.
    :param descriptor: of the stream.
    :param on_full: hears whether enough waits.
    :param on_error: hears that nothing can be written any more; what waits is dropped.
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
        """Write, after what waits."""
        if self._broken or not data:
            return
        if self._thread is None:  # a daemon, so that one that waits does not keep the process
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
        """:returns: fires when nothing waits; to be called once at a time."""
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
        """:returns: what is left."""
        try:
            return data[os.write(self._descriptor, data) :]
        except BlockingIOError:  # somebody else who has it wants it so
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
