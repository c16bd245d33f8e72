"""One running iteration: shows and reads its output, and ends it when necessary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.loop.model import RunOutcome
from ironcurtain.terminal.emulator_wire import ScanResult
from ironcurtain.terminal.model import ProgramExit

INTERRUPTED_SECONDS = 2.0
"""Seconds to wait for the end of the output after an interrupt."""


class IdleTimer:
    """
    :param limit: maximum seconds without activity; 0: no limit.
    :param now: seconds of a monotonic clock.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._limit, self._active = limit, now

    def active(self, now: float) -> None:
        """There was output, or a person's input. Times earlier than the last one are ignored."""
        self._active = max(self._active, now)

    def left(self, now: float) -> float | None:
        """:returns: seconds until the limit, not negative; 0: it is reached; ``None``: there is no limit."""
        return max(0.0, self._active + self._limit - now) if self._limit else None


class EndableProgram(Protocol):
    """A program that can be ended."""

    def stop(self) -> None:
        """Ask it to end; after a grace period, kill it."""

    def kill(self) -> None:
        """Kill it."""


class OutputReader(Protocol):
    """Reads the output: usually a :class:`~ironcurtain.loop.output_scan.OutputScan`."""

    problem: str

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere."""

    def end(self, patience: float | None = None) -> Deferred[ScanResult]:
        """:returns: its findings, once everything is read; does not fail."""

    def lost(self, why: str) -> None:
        """Continue without it."""


class IterationMonitor:
    """
    Collects the output of one iteration, and decides when to end it.

    :param show: called with the output.
    :param idle_seconds: seconds without activity after which it is ended; 0: never.
    :param limit_seconds: its time limit; ``None``: none.
    :ivar text: the end of its output, once it has ended.
    :param active: returns the time of the last input, and whether a viewer holds up the output.
    """

    def __init__(
        self,
        clock: IReactorTime,
        reader: OutputReader,
        show: Callable[[bytes], None],
        idle_seconds: float,
        limit_seconds: float | None,
        active: Callable[[], tuple[float, bool]],
    ) -> None:
        self._clock, self._show, self._last_active = clock, show, active
        self._reader = reader
        self.began = clock.seconds()
        self._idle = IdleTimer(idle_seconds, self.began)
        self._idle_seconds, self._limit_seconds = idle_seconds, limit_seconds
        self._program: EndableProgram | None = None
        self._timers: dict[str, IDelayedCall] = {}
        self.forced: tuple[RunOutcome, str] | None = None
        self._reading = False
        self.text = ""

    def begin(self, program: EndableProgram) -> None:
        """The program started."""
        self._program = program
        if self._limit_seconds is not None:
            self._later("limit", self._limit_seconds, self._time_is_up)
        self._look_if_idle()

    def received(self, data: bytes) -> None:
        """The program wrote output."""
        self._show(data)
        self.shown(data)

    def shown(self, data: bytes) -> None:
        """The program wrote output that is already shown."""
        self._idle.active(self._clock.seconds())
        self._reader.feed(data)

    def end(self, outcome: RunOutcome, reason: str, *, at_once: bool = False) -> None:
        """
        End it. The first reason counts.

        :param at_once: without a grace period.
        """
        self.forced = self.forced or (outcome, reason)
        if self._program is not None:
            (self._program.kill if at_once else self._program.stop)()
        elif self._reading:
            self._reader.lost("was abandoned")

    async def ended(self, ended: ProgramExit) -> tuple[RunOutcome, str]:
        """:returns: the outcome, once all its output is read."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._program = None
        self._reading = True
        found = await self._reader.end(INTERRUPTED_SECONDS if self._interrupted else None)
        self._reading = False
        self.text = found.text
        if self.forced is not None and self._interrupted:
            return self.forced
        if self._reader.problem:
            return (
                RunOutcome.FAILED,
                f"the reader of its output {self._reader.problem}: unknown whether it is done",
            )
        if found.promised:
            return RunOutcome.PROMISE, "the promise was made"
        if self.forced is not None:
            return self.forced
        return (RunOutcome.FAILED if ended.status else RunOutcome.DONE), ended.reason

    @property
    def _interrupted(self) -> bool:
        return self.forced is not None and self.forced[0] is RunOutcome.INTERRUPTED

    def _look_if_idle(self) -> None:
        now = self._clock.seconds()
        typed, held_up = self._last_active()
        self._idle.active(now if held_up else typed)
        left = self._idle.left(now)
        if left == 0:
            self.end(RunOutcome.IDLE, f"it was idle for {self._idle_seconds:g} s and was ended")
        elif left is not None:
            self._later("idle", left, self._look_if_idle)

    def _time_is_up(self) -> None:
        self.end(RunOutcome.LIMIT, "the loop's time is used up")

    def _later(self, name: str, seconds: float, what: Callable[[], None]) -> None:
        def due() -> None:
            del self._timers[name]
            what()

        self._timers[name] = self._clock.callLater(seconds, due)
