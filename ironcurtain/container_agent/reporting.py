"""
What an agent's program reports, as events of its session and records of the audit log, bounded in size and rate.

The text comes in many small pieces: the first one is told of at once, and those that follow are joined for a moment, so
that the session's log keeps its other events.
"""

from __future__ import annotations

from typing import Any

from ironcurtain.agents.streams import reports
from ironcurtain.session import agent_events, events
from ironcurtain.session.parts import Core
from ironcurtain.text.display import elapsed

JOIN_SECONDS = 0.05
"""Minimum seconds between two events with text: half of the time within which it must be shown."""

TEXT_LIMIT = 256 * 1024
"""Maximum length in characters of a piece of text; what is longer is left out, since the answer comes whole."""

A_SECOND = 50
"""Number of reports per second that become events; others are counted."""

RECORDED = 2000
"""Maximum length in characters of a text or a diff in the audit log."""


class Reporting:
    """
    Tells one session what its agent reports.

    Everything here is marked as reported: the agent's program may lie, and nobody judged what it reports.
    """

    def __init__(self, core: Core) -> None:
        self._core: Core = core
        self._clock: Any = core.services.clock
        self._pieces: list[str] = []
        self._size = 0
        self._block = ""
        self._timer: Any = None
        self._told = -JOIN_SECONDS
        self._second, self._count = 0, 0

    def take(self, report: reports.Report) -> None:
        """Tell of a report, if people have to know."""
        if isinstance(report, reports.Text):
            self._text(report.text)
            return
        if (event := _event(report)) is None or not self._within_rate():
            return
        self.flush()
        if isinstance(report, reports.TextDropped | reports.Activity):
            self._end_block(dropped=isinstance(report, reports.TextDropped))
        self._core.emit(event)
        if isinstance(report, reports.ToolStarted):
            self._record(tool=report.name, toolId=report.tool_id, what=report.what, parent=report.parent)
        elif isinstance(report, reports.ToolFinished):
            self._record(toolId=report.tool_id, status=report.status, what=report.what, diff=report.diff)
        elif isinstance(report, reports.Waiting):
            self._record(waits=elapsed(report.seconds) if report.seconds else "", reason=report.reason)

    def flush(self) -> None:
        """Tell of the text so far."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
        if self._pieces:
            text, self._pieces, self._size = "".join(self._pieces), [], 0
            self._block, self._told = (self._block + text)[:RECORDED], self._clock.seconds()
            self._core.emit(events.AgentText(text=text))

    def end(self) -> None:
        """A turn is over, or the program is."""
        self.flush()
        self._end_block()
        self._left_out()

    def _text(self, text: str) -> None:
        if self._size > TEXT_LIMIT:
            return
        self._pieces.append(text)
        self._size += len(text)
        if self._timer is None:
            rest = self._told + JOIN_SECONDS - self._clock.seconds()
            self._timer = self._clock.callLater(max(rest, 0.0), self.flush)

    def _end_block(self, dropped: bool = False) -> None:
        text, self._block = self._block, ""
        if text and not dropped:
            self._record(text=text)

    def _record(self, **members: str) -> None:
        given = {name: value[:RECORDED] for name, value in members.items() if value}
        self._core.audit.append("agent-reported", **given)

    def _within_rate(self) -> bool:
        if (second := int(self._clock.seconds())) != self._second:
            self._left_out()
            self._second, self._count = second, 0
        self._count += 1
        return self._count <= A_SECOND

    def _left_out(self) -> None:
        if (more := self._count - A_SECOND) > 0:
            self._core.emit(events.Notice(text=f"{more} more reports of the agent were left out"))
        self._count = 0


def _event(report: reports.Report) -> Any:
    """:returns: the event that a report becomes; ``None`` if it becomes none."""
    match report:
        case reports.Activity(state):
            return agent_events.AgentActivity(state=state[: agent_events.WHAT_LIMIT])
        case reports.TextDropped():
            return agent_events.AgentTextDropped()
        case reports.ToolStarted():
            return agent_events.AgentToolStarted(
                tool_id=_identity(report.tool_id),
                name=report.name[: agent_events.WHAT_LIMIT],
                what=report.what[: agent_events.WHAT_LIMIT],
                parent=_identity(report.parent),
            )
        case reports.ToolFinished():
            return agent_events.AgentToolFinished(
                tool_id=_identity(report.tool_id),
                status=report.status,
                what=report.what[: agent_events.WHAT_LIMIT],
                diff=report.diff[: 2 * agent_events.DIFF_LIMIT],
            )
        case reports.Waiting(seconds, reason):
            return events.ModelRetry(delay=seconds, reason=reason)
        case reports.Remark(text):
            return events.Notice(text=text)
        case _:
            return None


def _identity(tool_id: str) -> str:
    return tool_id[:200]
