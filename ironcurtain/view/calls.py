"""
The tools in use, and the lines printed when they end: those whose calls IronCurtain judges, and those that the agent's
program reports of itself.
"""

from __future__ import annotations

import msgspec

from ironcurtain.session import events
from ironcurtain.session.agent_events import AgentToolFinished, AgentToolStarted
from ironcurtain.text.columns import Line, Span, Style, cut
from ironcurtain.text.display import elapsed, one_line, took
from ironcurtain.view.arguments import NAME, brief_json, diff_lines
from ironcurtain.view.escalations import ended_words, tool_name
from ironcurtain.view.events import TEXT_LIMIT, unasked
from ironcurtain.view.look import Signs

LEAST_ARGUMENTS = 8
"""Minimum number of columns for showing arguments."""

DIFF_LINES = 30
"""Maximum number of lines of a diff in the conversation; the workspace has all."""

KEPT = 200
"""Maximum number of calls, and of tools reported, that are remembered: beginnings only may be told."""

EXPLAINED = "lines with a dot tell what the agent reports of its own tools, inside its sandbox: nobody judged it"
"""Said once in a session."""


class _Tool(msgspec.Struct):
    name: str
    what: str
    started: float
    inside: bool = False
    """Whether a sub-agent uses it."""
    refusal: str = ""
    unasked: str = ""


class ToolsInUse(msgspec.Struct):
    """The tools in use, oldest first."""

    signs: Signs
    explained: bool = False
    """Whether :data:`EXPLAINED` was said."""
    _calls: dict[str, _Tool] = msgspec.field(default_factory=dict)
    """Those that are judged, apart from the others: an agent's program chooses its identifiers itself."""
    _reported: dict[str, _Tool] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._calls or self._reported)

    def began(self, event: events.ToolCallRaised | AgentToolStarted, at: float) -> None:
        """:param at: seconds since the epoch."""
        if isinstance(event, AgentToolStarted):
            name, what = one_line(event.name, NAME), one_line(event.what)
            self._reported[event.tool_id] = _Tool(name, what, at, bool(event.parent))
        else:
            name, what = tool_name(event.server, event.tool), brief_json(event.arguments)
            self._calls[event.call_id] = _Tool(name, what, at)
        for tools in (self._calls, self._reported):
            while len(tools) > KEPT:
                del tools[next(iter(tools))]

    def decided(self, event: events.ToolDecision) -> None:
        """The policy or a person decided on a call."""
        if (call := self._calls.get(event.call_id)) is not None:
            call.refusal = _refusal(event)
            call.unasked = f"approved by {one_line(event.by, 64)}{unasked(event)}" if event.permission else ""

    def over(self, event: events.ToolFinished | AgentToolFinished, at: float, width: int) -> list[Line]:
        """:returns: the lines for a tool that ended; nothing if it is unknown."""
        if isinstance(event, events.ToolFinished):
            call = self._calls.pop(event.call_id, None)
            return [] if call is None else self._result(call, event.status, took(event.duration_ms), width)
        tool = self._reported.pop(event.tool_id, None)
        return [] if tool is None else self._report(tool, event, at, width)

    def abandon(self, width: int) -> list[Line]:
        """:returns: the lines for the calls in progress: the message is over, and their results are not awaited."""
        calls = list(self._calls.values())
        self._calls, self._reported = {}, {}
        return [line for call in calls for line in self._result(call, "not finished", "", width)]

    def forget_calls(self) -> None:
        """Forget the calls that are judged: their ends may have been missed."""
        self._calls = {}

    def status(self, now: float, width: int) -> Line:
        """:returns: the oldest call in progress, else the newest tool reported, and its duration. There must be one."""
        tool = next(iter(self._calls.values())) if self._calls else next(reversed(self._reported.values()))
        more = f" and {len(self._calls) - 1} more" if len(self._calls) > 1 else ""
        time = f"{more} {elapsed(now - tool.started)}"
        return (*self._named(tool, width - len(time)), Span(time, "dim"))

    def _result(self, call: _Tool, status: str, time: str, width: int) -> list[Line]:
        good = status == "success"
        mark = Span(f"{self.signs.done if good else self.signs.failed} ", "good" if good else "bad")
        known = "" if good or call.refusal else f" {one_line(status, 30)}"
        tail = f"{known} ({time})" if time and not call.refusal else known
        lines = [(mark, *self._named(call, width - len(mark.text) - len(tail)), Span(tail, "dim"))]
        if call.refusal:
            lines.append((Span(f"  {call.refusal}", "bad"),))
        if call.unasked:
            lines.append((Span(f"  {call.unasked}", "dim"),))
        return lines

    def _report(self, tool: _Tool, event: AgentToolFinished, at: float, width: int) -> list[Line]:
        good, indent = event.status == "success", "  " * tool.inside
        failed = "" if good else f"{self.signs.failed} "
        mark = Span(f"{indent}{self.signs.dot.strip()} {failed}", "dim" if good else "bad")
        lines: list[Line] = [(mark, *self._named(tool, width - len(mark.text), "dim"))]
        if not good:
            said = f", {one_line(event.what)}" if event.what else ""
            time = took(max(0.0, at - tool.started) * 1000)
            lines.append((Span(cut(f"{indent}  {one_line(event.status, 20)}{said} ({time})", width), "dim"),))
        return [*lines, *diff_lines(event.diff, DIFF_LINES, indent=f"{indent}  ")]

    def _named(self, tool: _Tool, width: int, style: Style = "") -> Line:
        room = width - len(tool.name)
        what = f" {cut(tool.what, room - 1, self.signs.rest)}" if tool.what and room > LEAST_ARGUMENTS else ""
        return (Span(tool.name, style), *((Span(what, "dim"),) if what else ()))


def _refusal(event: events.ToolDecision) -> str:
    match event.decision:
        case "deny":
            reason = f": {one_line(event.reason, TEXT_LIMIT)}" if event.reason else ""
            return f"denied by {one_line(event.rule, 64)}{reason}"
        case "denied" | "expired" | "unattended" | "withdrawn" | "too-many":
            return one_line(ended_words(event.decision, event.by or "a person"), TEXT_LIMIT)
        case _:
            return ""
