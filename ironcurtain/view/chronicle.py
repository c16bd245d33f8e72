"""What happened in one session, with times: for a screen that shows it beside other things."""

from __future__ import annotations

from collections import deque

from ironcurtain.session import events
from ironcurtain.text.columns import Line, Span, indented, rows
from ironcurtain.text.display import time_of_day
from ironcurtain.view.events import Role, Severity, describe
from ironcurtain.view.narration import Answers, Narration, Say

KEPT = 500
"""Maximum number of lines kept."""


def watched(narration: Narration, stamped: events.Stamped) -> list[Line]:
    """
    :param narration: whose answers flow.
    :returns: the lines of an event for a person who takes no part: a question is told of in a line.
    """
    words = describe(stamped.event)
    asked = () if words is None else words.line
    lines = [item.line if isinstance(item, Say) else asked for item in narration.apply(stamped)]
    if isinstance(stamped.event, events.TurnStarted):
        lines += [item.line for item in narration.message(stamped.event.message) if isinstance(item, Say)]
    return lines


class Chronicle:
    """The newest lines of a session."""

    def __init__(self) -> None:
        self._narration = Narration(Answers.FLOWING, airy=False)
        self._lines: deque[tuple[str, Line]] = deque(maxlen=KEPT)

    def add(self, stamped: events.Stamped) -> None:
        """Add an event."""
        event, time = stamped.event, f"{time_of_day(stamped.time)} "
        lines, words = watched(self._narration, stamped), describe(event)
        if words is not None and words.severity is Severity.DETAIL and words.role is Role.NOTICE:
            lines.append(words.line)
        self._lines.extend((time, line) for line in lines)

    def lines(self, width: int, now: float) -> list[Line]:
        """
        :param width: columns.
        :param now: seconds since the epoch.
        :returns: what happened, and below it what is being written and done.
        """
        self._narration.width = width
        found: list[Line] = []
        for time, line in self._lines:
            found += indented(rows(line, width - len(time)), (Span(time, "dim"),))
        live = self._narration.live(now)
        return [*found, *((Span(text),) for text in live.tail), live.status]
