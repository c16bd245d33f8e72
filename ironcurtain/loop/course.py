"""When a loop has come to its end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from ironcurtain.loop.model import Ending, Iteration, LoopState, Outcome


@dataclass(frozen=True, slots=True)
class Limits:
    """
    :param iterations: most of them.
    :param seconds: of all of them together; ``None``: no limit.
    :param cost: likewise, in US dollars.
    :param failures: how many in a row may fail.
    """

    iterations: int
    seconds: float | None = None
    cost: float | None = None
    failures: int = 3


def over(state: LoopState, limits: Limits, first: int = 1) -> tuple[Ending, str] | None:
    """
    :param first: number of the first iteration since the loop was started or resumed.
    :returns: why no further iteration comes, and that in words; ``None``: one comes.
    """
    done = state.iterations
    if done and done[-1].outcome is Outcome.PROMISE:
        return Ending.PROMISE, f"the promise was made in iteration {done[-1].number}"
    if (failures := _failures(done, first)) >= limits.failures:
        return Ending.FAILURES, f"{failures} iterations in a row failed"
    if limits.seconds is not None and state.seconds >= limits.seconds:
        return Ending.LIMIT, f"the time limit of {limits.seconds:g} s is reached"
    if limits.cost is not None and state.cost >= limits.cost:
        return Ending.LIMIT, f"the cost limit of ${limits.cost:g} is reached"
    if len(done) >= limits.iterations:
        return Ending.LIMIT, f"the limit of {limits.iterations} iterations is reached"
    return None


def _failures(done: Sequence[Iteration], first: int) -> int:
    failed = takewhile(lambda each: each.outcome is Outcome.FAILED and each.number >= first, reversed(done))
    return sum(1 for _ in failed)
