"""Loops and iterations as values: modes, outcomes, and the conditions for the end of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import takewhile

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.terminal.echo import LoopEvent
from ironcurtain.text.quantities import counted


class IterationMode(StrEnum):
    """How the agent runs."""

    HEADLESS = "headless"
    """With pipes: the prompt on its standard input, its output as it arrives."""

    INTERACTIVE = "interactive"
    """In a terminal, with the viewer's input."""

    OBSERVE = "observe"
    """In a terminal without input."""


def choose_mode(
    pty_mode: bool, pty_interactive: bool, *, pty: bool = False, observe: bool = False, no_pty: bool = False
) -> IterationMode:
    """
    :param pty_mode: the setting, as is ``pty_interactive``.
    :param pty: the flag ``--pty``; so are ``observe``, which implies it, and ``no_pty``.
    :raises UsageError: the flags contradict each other.
    """
    if no_pty and (pty or observe):
        raise UsageError(f"give either --no-pty or {'--observe' if observe else '--pty'}")
    if no_pty or not (pty or observe or pty_mode):
        return IterationMode.HEADLESS
    return IterationMode.OBSERVE if observe or not (pty or pty_interactive) else IterationMode.INTERACTIVE


class RunOutcome(StrEnum):
    """How an iteration ended."""

    RUNNING = "running"
    """It has not ended; in a loop that has ended: its process died."""

    PROMISE = "promise"
    DONE = "done"
    """It succeeded without the promise."""

    FAILED = "failed"
    """Its status was not 0."""

    IDLE = "idle"
    """It was idle for too long, and was ended."""

    LIMIT = "limit"
    """It was ended because the loop's time or cost limit was reached."""

    INTERRUPTED = "interrupted"
    """A person ended it."""

    ACCOUNT_LIMIT = "account-limit"
    """It ended since the account that pays for the model has reached a limit, for whose end the loop waits."""


class LoopEnding(StrEnum):
    """Why a loop ended."""

    PROMISE = "promise"
    LIMIT = "limit"
    FAILURES = "failures"
    INTERRUPTED = "interrupted"


EXIT_STATUS = {LoopEnding.PROMISE: 0, LoopEnding.LIMIT: 3, LoopEnding.FAILURES: 4, LoopEnding.INTERRUPTED: 130}


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """
    One iteration.

    :param number: from 1, counted across resumes.
    :param status: exit status of the program, as in a shell; ``None``: unknown.
    :param reason: for people; empty if there is nothing to say.
    :param started_at: UTC in ISO 8601.
    :param cost: in US dollars; ``None``: unknown.
    :param events: number of events.
    :param commit: of the checkpoint after it; empty: none.
    """

    number: int
    outcome: RunOutcome
    status: int | None = None
    reason: str = ""
    started_at: str
    seconds: float = 0.0
    cost: float | None = None
    events: int = 0
    commit: str = ""


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """
    A loop as stored on disk.

    :param events: of the last iteration that ended, for the next prompt.
    :param ending: empty while it runs.
    """

    version: int = 1
    iterations: tuple[Iteration, ...] = ()
    events: tuple[LoopEvent, ...] = ()
    ending: str = ""
    reason: str = ""

    @property
    def seconds(self) -> float:
        """Total time of all iterations."""
        return sum(iteration.seconds for iteration in self.iterations)

    @property
    def cost(self) -> float:
        """Total known cost in US dollars."""
        return sum(iteration.cost or 0.0 for iteration in self.iterations)


class LoopLimits(msgspec.Struct, frozen=True):
    """
    :param iterations: maximum number.
    :param seconds: total time; ``None``: no limit.
    :param cost: likewise, in US dollars.
    :param failures: maximum number of failures in a row.
    """

    iterations: int
    seconds: float | None = None
    cost: float | None = None
    failures: int = 3


def loop_end(state: LoopState, limits: LoopLimits, first: int = 1) -> tuple[LoopEnding, str] | None:
    """
    :param first: number of the first iteration since the loop was started or resumed.
    :returns: why the loop ends, as a value and in words; ``None``: it continues.
    """
    done = state.iterations
    if done and done[-1].outcome is RunOutcome.PROMISE:
        return LoopEnding.PROMISE, f"the promise was made in iteration {done[-1].number}"
    if (failures := _failures(done, first)) >= limits.failures:
        return LoopEnding.FAILURES, f"{counted(failures, 'iteration')} in a row failed"
    if limits.seconds is not None and state.seconds >= limits.seconds:
        return LoopEnding.LIMIT, f"the time limit of {limits.seconds:g} s is reached"
    if limits.cost is not None and state.cost >= limits.cost:
        return LoopEnding.LIMIT, f"the cost limit of ${limits.cost:g} is reached"
    if len(done) >= limits.iterations:
        return LoopEnding.LIMIT, f"the limit of {counted(limits.iterations, 'iteration')} is reached"
    return None


def _failures(done: Sequence[Iteration], first: int) -> int:
    failed = takewhile(lambda each: each.outcome is RunOutcome.FAILED and each.number >= first, reversed(done))
    return sum(1 for _ in failed)
