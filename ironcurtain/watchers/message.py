"""What a watcher's agent is told: the instruction, and what set it off, as data."""

from __future__ import annotations

from ironcurtain.text.data import with_marked_data
from ironcurtain.text.display import json_line, one_line
from ironcurtain.text.quantities import counted
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.model import Event

LINE_LIMIT = 8000
"""Maximum number of characters of one event."""

SUMMARY_LIMIT = 200
"""Maximum number of characters of an event in a line for people."""


def message(instruction: str, batch: Batch, mark: str) -> str:
    """
    :param mark: random letters and digits, so that nothing in the data can forge its end.
    :returns: the message for the agent.
    """
    lines = [json_line(dict(event.data), LINE_LIMIT) for event in batch.events]
    if batch.more:
        lines.append(f"({counted(batch.more, 'further event')})")
    return with_marked_data(
        instruction, "The lines between the marks say what happened.", "event", "\n".join(lines), mark
    )


def summary(batch: Batch) -> str:
    """:returns: what happened, on one line for people."""
    more = len(batch.events) - 1 + batch.more
    return _line(batch.events[0]) + (f" (and {counted(more, 'event')} more)" if more else "")


def _line(event: Event) -> str:
    return one_line(", ".join(f"{name} {value}" for name, value in event.data.items()), SUMMARY_LIMIT)
