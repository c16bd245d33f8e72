"""The client of the process that reads a program's output: never blocks on it, and limits what it may report."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.loop.echo import LoopEvent
from ironcurtain.loop.scan_wire import (
    BATCH,
    EVENTS_LIMIT,
    BytesRead,
    EventFound,
    ScanBegin,
    ScanEnd,
    ScanOrder,
    ScanOutput,
    ScanReply,
    ScanResize,
    ScanResult,
    ScanTyped,
    reply_reader,
)
from ironcurtain.process.frames import packed
from ironcurtain.process.worker import Worker, WorkerReactor

COMMAND = (sys.executable, "-I", "-m", "ironcurtain.loop.scan_worker")

BATCH_SECONDS = 0.2
"""Maximum delay in seconds of output smaller than a :data:`~ironcurtain.loop.scan_wire.BATCH`."""

BEHIND_LIMIT = 32 * 1024 * 1024
"""Maximum unread bytes; beyond it, the program is paused until half of them are read."""

SILENCE_SECONDS = 30.0
"""Time limit in seconds for silence while it has something to read."""


class Backlog:
    """
    How much output is unread, and when the program has to be paused for it.

    :param on_full: called with whether it has to be.
    :ivar size: in bytes.
    """

    def __init__(self, on_full: Callable[[bool], None]) -> None:
        self._on_full, self._is_full = on_full, False
        self.size = 0

    def add(self, size: int) -> None:
        """So many bytes more wait; less than none: they were read. It is full until half of the limit is read."""
        self.size += size
        if self._is_full != (self.size > (BEHIND_LIMIT // 2 if self._is_full else BEHIND_LIMIT)):
            self._is_full = not self._is_full
            self._on_full(self._is_full)

    def clear(self) -> None:
        """Nothing waits any more."""
        self.add(-self.size)


class ScanProcess:
    """
    The process of one iteration, which may be started before :meth:`begin`.

    If it fails, only its events count: the promise was not made.

    :param on_event: called once with each event.
    :param on_behind: called with whether the program has to be paused, because this process is too slow.
    :ivar events: all of them.
    :ivar problem: why it failed; empty: it did not.
    """

    log = Logger()

    def __init__(
        self,
        reactor: WorkerReactor,
        on_event: Callable[[LoopEvent], None],
        on_behind: Callable[[bool], None],
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._reactor, self._on_event, self._unread = reactor, on_event, Backlog(on_behind)
        self._pieces: list[bytes] = []
        self._size = 0
        self._frames: deque[bytes] = deque()
        self._blocked = self._ending = False
        self._batch: IDelayedCall | None = None
        self._silence: IDelayedCall | None = None
        self._found: Deferred[ScanResult] = Deferred()
        self.events: list[LoopEvent] = []
        self.problem = ""
        self._worker: Worker[ScanReply] | None = None
        try:
            self._worker = Worker(reactor, command, reply_reader(), self)
        except OSError as e:
            self.lost(f"cannot be started: {e.strerror}")

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._worker.pid if self._worker is not None else None

    def begin(self, begin: ScanBegin) -> None:
        """:param begin: the first order."""
        self._put(begin)
        self._send()

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere; it is read later."""
        if self._worker is None:
            return
        self._pieces.append(data)
        self._size += len(data)
        self._unread.add(len(data))
        if self._size >= BATCH:
            self._flush()
        else:
            self._send_soon()

    def typed(self, data: bytes) -> None:
        """Process a person's input: its echo does not count, as with the prompt."""
        self._put(ScanTyped(data))

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        self._put(ScanResize(columns, rows))

    def end(self, patience: float | None = None) -> Deferred[ScanResult]:
        """
        The output ended.

        :param patience: time limit in seconds; ``None``: none.
        :returns: its findings, once everything is read. Does not fail.
        """
        self._ending = True
        self._put(ScanEnd())
        self._flush()
        if patience is not None and self._worker is not None:
            late = self._reactor.callLater(patience, self.lost, "was abandoned")
            self._found.addBoth(_cancelling(late))
        return self._found

    def received(self, reply: ScanReply) -> None:
        """For the worker."""
        if self._silence is not None:
            self._silence.reset(SILENCE_SECONDS)
        if isinstance(reply, BytesRead):
            self._read(reply.size)
        elif isinstance(reply, EventFound):
            self._said(LoopEvent(reply.topic, reply.payload))
        elif self._ending and not self._unread.size:
            self._over(reply)
            return
        else:
            self.lost("answered before it had read all")
        self._watch()

    def blocked(self, blocked: bool) -> None:
        """For the worker: whether sent data waits to be read."""
        self._blocked = blocked
        if not blocked:
            self._flush()

    def lost(self, why: str = "") -> None:
        """Continue without it. No effect once it has ended."""
        if not self.problem and not self._found.called:
            self.problem = why or "ended"
            self._over(ScanResult(False, ""))

    def ended(self, how: str, words: str) -> None:
        """For the worker: its process ended."""
        self.lost(how)
        if self.problem:
            self.log.warn("reading output: {problem}: {how}: {words}", problem=self.problem, how=how, words=words)

    def _read(self, size: int) -> None:
        if size > self._unread.size:
            self.lost("read more than there was")
        else:
            self._unread.add(-size)

    def _said(self, event: LoopEvent) -> None:
        if len(self.events) >= EVENTS_LIMIT or event in self.events:
            self.lost("said too much")
            return
        self.events.append(event)
        self._on_event(event)

    def _put(self, order: ScanOrder) -> None:
        if self._worker is not None:
            self._seal()
            self._frames.append(packed(order))
            self._send_soon()

    def _send_soon(self) -> None:
        if self._batch is None and not self._blocked:
            self._batch = self._reactor.callLater(BATCH_SECONDS, self._flush_late)

    def _flush_late(self) -> None:
        self._batch = None
        self._flush()

    def _flush(self) -> None:
        self._seal()
        self._send()

    def _seal(self) -> None:
        if self._pieces:
            self._frames.append(packed(ScanOutput(b"".join(self._pieces))))
            self._pieces, self._size = [], 0

    def _send(self) -> None:
        while self._frames and not self._blocked and self._worker is not None:
            self._worker.write(self._frames.popleft())
        self._watch()

    def _watch(self) -> None:
        """Start or stop the time limit for silence."""
        waits = self._worker is not None and (self._unread.size > 0 or self._ending)
        if self._silence is None and waits:
            self._silence = self._reactor.callLater(SILENCE_SECONDS, self._silent)
        elif self._silence is not None and not waits:
            self._silence.cancel()
            self._silence = None

    def _silent(self) -> None:
        self._silence = None
        self.lost("does not answer")

    def _over(self, found: ScanResult) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
        if self._batch is not None:
            self._batch.cancel()
            self._batch = None
        self._pieces.clear()
        self._frames.clear()
        self._watch()
        self._unread.clear()
        self._found.callback(found)


def _cancelling(late: IDelayedCall) -> Callable[[ScanResult], ScanResult]:
    def cancel(found: ScanResult) -> ScanResult:
        if late.active():
            late.cancel()
        return found

    return cancel
