"""What becomes of iterations and loops, as values. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ironcurtain.loop.echo import Event


class Outcome(StrEnum):
    """How an iteration ended."""

    RUNNING = "running"
    """It has not ended; of a loop that is over: it was lost with the process that ran it."""

    PROMISE = "promise"
    DONE = "done"
    """Well, without the promise."""

    FAILED = "failed"
    """With another status than 0."""

    IDLE = "idle"
    """It showed nothing for too long, and was ended."""

    LIMIT = "limit"
    """It was ended since the whole loop's time or money was used up."""

    INTERRUPTED = "interrupted"
    """Somebody ended it."""


class Ending(StrEnum):
    """Why a loop ended."""

    PROMISE = "promise"
    LIMIT = "limit"
    FAILURES = "failures"
    INTERRUPTED = "interrupted"


EXIT_STATUS = {Ending.PROMISE: 0, Ending.LIMIT: 3, Ending.FAILURES: 4, Ending.INTERRUPTED: 130}


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """
    One iteration.

    :param number: from 1, over all times that the loop was resumed.
    :param status: of the program, as a shell says it; ``None``: not known.
    :param reason: for people; empty if there is nothing to say.
    :param started_at: UTC in ISO 8601.
    :param cost: in US dollars; ``None``: not known.
    :param events: how many there were.
    :param commit: of the checkpoint after it; empty: there is none.
    """

    number: int
    outcome: Outcome
    status: int | None = None
    reason: str = ""
    started_at: str
    seconds: float = 0.0
    cost: float | None = None
    events: int = 0
    commit: str = ""


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """
    A loop as it is kept on disk.

    :param events: of the last iteration that ended: the next one is told.
    :param ending: empty while it goes on.
    """

    version: int = 1
    iterations: tuple[Iteration, ...] = ()
    events: tuple[Event, ...] = ()
    ending: str = ""
    reason: str = ""

    @property
    def seconds(self) -> float:
        """How long all iterations took together."""
        return sum(iteration.seconds for iteration in self.iterations)

    @property
    def cost(self) -> float:
        """What they cost, as far as that is known, in US dollars."""
        return sum(iteration.cost or 0.0 for iteration in self.iterations)
