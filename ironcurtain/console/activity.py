"""The activity of a session, one line per event."""

from __future__ import annotations

from collections import deque
from datetime import datetime

from ironcurtain.session import events
from ironcurtain.session.agent_events import AgentEvent
from ironcurtain.session.words import describe, unasked
from ironcurtain.text.columns import Line, Span, Style
from ironcurtain.text.display import one_line

KEPT = 500
"""Maximum number of lines kept."""

TEXT = 300
"""Maximum length in characters of a text in a line."""


class Activity:
    """The newest events of one session, as lines. Pieces of the agent's text are joined."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque(maxlen=KEPT)
        self._names: dict[str, str] = {}
        self._said = ""

    def add(self, stamped: events.Stamped) -> None:
        """Add an event."""
        event = stamped.event
        if isinstance(event, events.AgentText):
            self._say(event.text, stamped.time)
            return
        self._said = ""
        text, style = self._words(event)
        if text:
            self.lines.append(_line(text, style, stamped.time))

    def _say(self, text: str, at: float) -> None:
        if self._said:
            self.lines.pop()
        if len(self._said) >= TEXT:
            self._said = ""
        self._said = (self._said + text)[:TEXT] or " "
        self.lines.append(_line(f"says {one_line(self._said.strip())}", "", at))

    def _words(self, event: events.SessionEvent) -> tuple[str, Style]:
        match event:
            case events.ToolCallRaised():
                name = f"{one_line(event.server, 64)}.{one_line(event.tool, 64)}"
                self._names[event.call_id] = name
                return f"calls {name} {one_line(event.arguments, TEXT)}", "bold"
            case events.ToolDecision():
                by = event.by or event.rule
                about = f" by {one_line(by, 64)}{unasked(event)}" if by else ""
                good = event.decision in ("allow", "approved")
                return f"  {one_line(event.decision, 20)}{about}", "dim" if good else "bad"
            case events.ToolFinished():
                name = self._names.pop(event.call_id, "the call")
                good = event.status == "success"
                text = f"  {name}: {one_line(event.status, 20)} in {event.duration_ms:.0f} ms"
                return text, "dim" if good else "bad"
            case _:
                return _others(event)


def _others(event: events.SessionEvent) -> tuple[str, Style]:
    match event:
        case events.StateChanged():
            why = f": {one_line(event.reason, TEXT)}" if event.reason else ""
            return f"is {one_line(event.state, 20)}{why}", "dim"
        case events.TurnStarted():
            return f"message: {one_line(event.message, TEXT)}", "key"
        case events.TurnFinished():
            return (f"no answer: {one_line(event.error, TEXT)}", "bad") if event.error else ("has answered", "good")
        case events.CodeStarted():
            return f"runs code: {one_line(event.code, TEXT)}", "dim"
        case events.CodeFinished() if event.error:
            return f"the code failed: {one_line(event.error, TEXT)}", "bad"
        case events.EscalationRaised():
            return f"asks: escalation {event.number}, {one_line(event.server, 64)}.{one_line(event.tool, 64)}", "warn"
        case events.EscalationClosed():
            by = f" by {one_line(event.by, 64)}" if event.by else ""
            kept = f"; not asked again about {one_line(event.kept)}" if event.kept else ""
            return f"escalation {event.number}: {one_line(event.outcome, 20)}{by}{kept}", "good"
        case events.EscalationApproved() | events.PermissionRevoked():
            return one_line(describe(event)), "warn"
        case events.RequestRefused():
            return one_line(describe(event), TEXT), "bad"
        case events.Missed():
            return f"{event.count} events were lost here", "warn"
        case _ if isinstance(event, AgentEvent):
            return one_line(describe(event), TEXT), "dim"
        case events.Notice(text=text, routine=True):
            return one_line(text, TEXT), "dim"
        case _:
            return _remarks(event)


def _remarks(event: events.SessionEvent) -> tuple[str, Style]:
    """Events about problems and delays, in their own words."""
    for name in ("message", "text", "reason", "server"):
        if words := getattr(event, name, ""):
            return one_line(str(words), TEXT), "warn"
    return "", ""


def _line(text: str, style: Style, at: float) -> Line:
    return (Span(f"{datetime.fromtimestamp(at):%H:%M:%S} ", "dim"), Span(text, style))
