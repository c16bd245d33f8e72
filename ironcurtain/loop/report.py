"""A loop in a table, for people. Pure."""

from __future__ import annotations

from ironcurtain.loop.model import Iteration, LoopState, Outcome
from ironcurtain.text.display import one_line

HEADER = ("N", "OUTCOME", "STATUS", "SECONDS", "COST", "EVENTS", "COMMIT", "WHY")

SHOWN = 20
"""Most iterations that are listed (our choice); of a longer loop, the last ones."""


def rows(state: LoopState) -> list[tuple[str, ...]]:
    """:returns: the table below :data:`HEADER`."""
    return [_row(iteration) for iteration in state.iterations[-SHOWN:]]


def sentence(state: LoopState, reason: str) -> str:
    """:returns: how it ended; what stands in the reason is to be escaped."""
    count = len(state.iterations)
    cost = f", ${state.cost:.2f}" if any(each.cost is not None for each in state.iterations) else ""
    return f"{count} iteration{'s' * (count != 1)} in {state.seconds:.1f} s{cost}: {reason}."


def _row(iteration: Iteration) -> tuple[str, ...]:
    cut_off = iteration.outcome is Outcome.RUNNING  # the loop is over, and never heard of its end
    return (
        str(iteration.number),
        "cut off" if cut_off else iteration.outcome,
        "-" if iteration.status is None else str(iteration.status),
        "-" if cut_off else f"{iteration.seconds:.1f}",
        "-" if iteration.cost is None else f"${iteration.cost:.4f}",
        str(iteration.events),
        iteration.commit[:9] or "-",
        one_line(iteration.reason, 60) or "-",
    )
