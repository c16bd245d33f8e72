"""Scan the output of an iteration, in a process of its own that nobody waits for and that may report so much only."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from ironcurtain.process.worker import WorkerReactor
from ironcurtain.terminal.echo import LoopEvent
from ironcurtain.terminal.emulator_process import COMMAND, EmulatorProcess, Purpose
from ironcurtain.terminal.emulator_wire import (
    EVENTS_LIMIT,
    BytesRead,
    EmulatorOrder,
    EmulatorOutbox,
    EndScan,
    EventFound,
    OpenScan,
    ResizeTerminal,
    ScanReport,
    ScanResult,
    TypedInput,
    sendable,
)

BEHIND_LIMIT = 32 * 1024 * 1024
"""Maximum unread bytes; beyond it, the program is paused until half of them are read."""

SILENCE_SECONDS = 30.0
"""Time limit in seconds for silence while it has something to read."""

NUMBER = 1
"""The number of the scan in its process, which has no other emulators."""


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


class OutputScan:
    """
    The scan of one iteration. Its process starts before :meth:`begin`.

    If it fails, only its events count: the promise was not made.

    :param on_event: called once with each event.
    :param on_behind: called with whether the program has to be paused, because the process is too slow.
    :ivar events: all of them.
    :ivar problem: why it failed; empty: it did not.
    """

    def __init__(
        self,
        reactor: WorkerReactor,
        on_event: Callable[[LoopEvent], None],
        on_behind: Callable[[bool], None],
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._reactor, self._on_event, self._unread = reactor, on_event, Backlog(on_behind)
        self._ending = False
        self._silence: IDelayedCall | None = None
        self._found: Deferred[ScanResult] = Deferred()
        self.events: list[LoopEvent] = []
        self.problem = ""
        self._process: EmulatorProcess | None = None
        try:
            self._process = EmulatorProcess(reactor, Purpose.SCAN, command)
        except OSError as e:
            self.lost(f"cannot be started: {e.strerror}")

    @property
    def pid(self) -> int | None:
        """The id of its process while it runs."""
        return self._process.pid if self._process is not None else None

    def begin(self, promise: str, prompt: str, size: tuple[int, int] | None) -> None:
        """
        Begin to read.

        :param size: columns and rows of the program's terminal; ``None``: it has none.
        """
        if self._process is not None:
            self.outbox = EmulatorOutbox(OpenScan(NUMBER, sendable(promise), sendable(prompt), size))
            self._process.add(NUMBER, self)

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere; it is read later."""
        if self._process is not None:
            self.outbox.feed(data)
            self._unread.add(len(data))
            self._process.fed(self)
            self._watch()

    def typed(self, data: bytes) -> None:
        """Process a person's input: its echo does not count, as with the prompt."""
        self._put(TypedInput(NUMBER, data))

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        self._put(ResizeTerminal(NUMBER, columns, rows))

    def end(self, patience: float | None = None) -> Deferred[ScanResult]:
        """
        The output ended.

        :param patience: time limit in seconds; ``None``: none.
        :returns: its findings, once everything is read. Does not fail.
        """
        self._ending = True
        self._put(EndScan(NUMBER))
        if self._process is not None:
            self._process.flush()
            self._watch()
            if patience is not None:
                late = self._reactor.callLater(patience, self.lost, "was abandoned")
                self._found.addBoth(_cancelling(late))
        return self._found

    def reported(self, report: ScanReport) -> None:
        """For the process."""
        if self._silence is not None:
            self._silence.reset(SILENCE_SECONDS)
        match report:
            case BytesRead() if report.size > self._unread.size:
                self.lost("read more than there was")
            case BytesRead():
                self._unread.add(-report.size)
            case EventFound():
                self._event(LoopEvent(report.topic, report.payload))
            case ScanResult() if self._ending and not self._unread.size:
                self._over(report)
            case _:
                self.lost("answered before it had read all")
        self._watch()

    def process_gone(self, why: str) -> None:
        """For the process: it failed."""
        self.lost(why)

    def lost(self, why: str) -> None:
        """Continue without it. No effect once it has ended."""
        if not self.problem and not self._found.called:
            self.problem = why
            self._over(ScanResult(NUMBER, False, ""))

    def _event(self, event: LoopEvent) -> None:
        if len(self.events) >= EVENTS_LIMIT or event in self.events:
            self.lost("said too much")
            return
        self.events.append(event)
        self._on_event(event)

    def _put(self, order: EmulatorOrder) -> None:
        if self._process is not None:
            self.outbox.put(order)
            self._process.fed(self)

    def _watch(self) -> None:
        """Start or stop the time limit for silence."""
        waits = self._process is not None and (self._unread.size > 0 or self._ending)
        if self._silence is None and waits:
            self._silence = self._reactor.callLater(SILENCE_SECONDS, self._silent)
        elif self._silence is not None and not waits:
            self._silence.cancel()
            self._silence = None

    def _silent(self) -> None:
        self._silence = None
        self.lost("does not answer")

    def _over(self, found: ScanResult) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.remove(NUMBER)
        self._watch()
        self._unread.clear()
        self._found.callback(found)


def _cancelling(late: IDelayedCall) -> Callable[[ScanResult], ScanResult]:
    def cancel(found: ScanResult) -> ScanResult:
        if late.active():
            late.cancel()
        return found

    return cancel
