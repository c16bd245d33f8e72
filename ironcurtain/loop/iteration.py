"""One iteration while it runs: its output is shown and read, and it is ended when it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.loop.model import RunOutcome
from ironcurtain.loop.scan_wire import ScanResult
from ironcurtain.terminal.model import ProgramExit

INTERRUPTED_SECONDS = 2.0
"""How long the end of the output is waited for once somebody has interrupted it."""


class IdleTimer:
    """
    :param limit: how many seconds without activity are too many; 0: none are.
    :param now: in seconds, from any clock that does not go back.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._limit, self._active = limit, now

    def active(self, now: float) -> None:
        """There was output, or a person's input; an earlier time than one that is known says nothing."""
        self._active = max(self._active, now)

    def left(self, now: float) -> float | None:
        """:returns: seconds until it is too long, not negative; 0: it is; ``None``: it never will be."""
        return max(0.0, self._active + self._limit - now) if self._limit else None


class EndableProgram(Protocol):
    """What can be ended."""

    def stop(self) -> None:
        """Ask it to end; after a grace, end it."""

    def kill(self) -> None:
        """End it at once."""


class OutputReader(Protocol):
    """What reads the output: usually a :class:`~ironcurtain.loop.scan_process.ScanProcess`."""

    problem: str

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere."""

    def end(self, patience: float | None = None) -> Deferred[ScanResult]:
        """:returns: what it found, once all is read; does not fail."""

    def lost(self, why: str = "") -> None:
        """Do without it."""


class IterationMonitor:
    """
    What is kept of one iteration, and when it has to end.

    :param show: gets the output.
    :param idle_seconds: after how long without activity it is ended; 0: never.
    :param limit_seconds: how long it may take; ``None``: as long as it likes.
    :ivar text: the last of what it wrote, once it has ended.
    :param active: when somebody typed the last time, and whether the output is held up by who looks at it.
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
        """It runs."""
        self._program = program
        if self._limit_seconds is not None:
            self._later("limit", self._limit_seconds, self._time_is_up)
        self._look_if_idle()

    def received(self, data: bytes) -> None:
        """It wrote something."""
        self._show(data)
        self.shown(data)

    def shown(self, data: bytes) -> None:
        """It wrote something, which is shown already."""
        self._idle.active(self._clock.seconds())
        self._reader.feed(data)

    def end(self, outcome: RunOutcome, reason: str, *, at_once: bool = False) -> None:
        """
        End it. The first reason stays.

        :param at_once: without a grace.
        """
        self.forced = self.forced or (outcome, reason)
        if self._program is not None:
            (self._program.kill if at_once else self._program.stop)()
        elif self._reading:
            self._reader.lost("was not waited for")

    async def ended(self, ended: ProgramExit) -> tuple[RunOutcome, str]:
        """:returns: what became of it, once all that it wrote is read."""
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
                f"what reads its output {self._reader.problem}: nobody knows whether it is done",
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
