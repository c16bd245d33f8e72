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


class Chronicle:
    """The newest lines of a session."""

    def __init__(self) -> None:
        self._narration = Narration(Answers.FLOWING, airy=False)
        self._lines: deque[tuple[str, Line]] = deque(maxlen=KEPT)

    def add(self, stamped: events.Stamped) -> None:
        """Add an event."""
        event, time = stamped.event, f"{time_of_day(stamped.time)} "
        items = self._narration.apply(stamped)
        if isinstance(event, events.TurnStarted):
            items += self._narration.message(event.message)
        words = describe(event)
        if words is not None and words.severity is Severity.DETAIL and words.role is Role.NOTICE:
            items.append(Say(words.line))
        # A question is told of in a line; whole answers there are none.
        asked = () if words is None else words.line
        self._lines.extend((time, item.line if isinstance(item, Say) else asked) for item in items)

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
