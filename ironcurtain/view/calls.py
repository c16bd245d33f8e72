"""The tool calls of a session: those in progress, and the lines printed when they end."""

from __future__ import annotations

from dataclasses import dataclass, field

from ironcurtain.session import events
from ironcurtain.text.columns import Line, Span, cut
from ironcurtain.text.display import elapsed, one_line, took
from ironcurtain.view.arguments import brief_json
from ironcurtain.view.escalations import tool_name
from ironcurtain.view.events import unasked
from ironcurtain.view.signs import Signs

LEAST_ARGUMENTS = 8
"""Minimum number of columns for showing arguments."""

REASON_LIMIT = 300
"""Maximum length in characters of a reason."""

_UNDECIDED = {
    "expired": "nobody decided in time",
    "unattended": "nobody was there to ask",
    "withdrawn": "withdrawn",
    "too-many": "refused: too many questions wait already",
}


@dataclass(slots=True)
class _Call:
    name: str
    arguments: str
    started: float
    refusal: str = ""
    unasked: str = ""


@dataclass(slots=True)
class RunningCalls:
    """The calls in progress, oldest first."""

    signs: Signs
    _running: dict[str, _Call] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._running)

    def raised(self, event: events.ToolCallRaised, at: float) -> None:
        """:param at: seconds since the epoch."""
        self._running[event.call_id] = _Call(tool_name(event.server, event.tool), brief_json(event.arguments), at)

    def decided(self, event: events.ToolDecision) -> None:
        """The policy or a person decided on a call."""
        if (call := self._running.get(event.call_id)) is not None:
            call.refusal = _refusal(event)
            call.unasked = f"approved by {one_line(event.by, 64)}{unasked(event)}" if event.permission else ""

    def over(self, event: events.ToolFinished, width: int) -> list[Line]:
        """:returns: the line for a call that ended; nothing if the call is unknown."""
        call = self._running.pop(event.call_id, None)
        return [] if call is None else self._result(call, event.status, took(event.duration_ms), width)

    def abandon(self, width: int) -> list[Line]:
        """:returns: the lines for the calls in progress, whose results are no longer awaited."""
        calls, self._running = self._running, {}
        return [line for call in calls.values() for line in self._result(call, "not finished", "", width)]

    def forget(self) -> None:
        """Forget all of them."""
        self._running.clear()

    def status(self, now: float, width: int) -> Line:
        """:returns: the oldest call in progress, and its duration. There must be one."""
        call, more = next(iter(self._running.values())), len(self._running) - 1
        time = f"{f' and {more} more' if more else ''} {elapsed(now - call.started)}"
        return (Span(call.name), *_fitting(call, width - len(call.name) - len(time), self.signs), Span(time, "dim"))

    def _result(self, call: _Call, status: str, time: str, width: int) -> list[Line]:
        good = status == "success"
        mark = Span(f"{self.signs.done if good else self.signs.failed} ", "good" if good else "bad")
        known = "" if good or call.refusal else f" {one_line(status, 30)}"
        tail = f"{known} ({time})" if time and not call.refusal else known
        room = width - len(mark.text) - len(call.name) - len(tail)
        line = (mark, Span(call.name), *_fitting(call, room, self.signs), Span(tail, "dim"))
        lines = [line, (Span(f"  {call.refusal}", "bad"),)] if call.refusal else [line]
        return [*lines, (Span(f"  {call.unasked}", "dim"),)] if call.unasked else lines


def _fitting(call: _Call, room: int, signs: Signs) -> Line:
    if not call.arguments or room <= LEAST_ARGUMENTS:
        return ()
    return (Span(f" {cut(call.arguments, room - 1, signs.rest)}", "dim"),)


def _refusal(event: events.ToolDecision) -> str:
    if event.decision == "deny":
        reason = f": {one_line(event.reason, REASON_LIMIT)}" if event.reason else ""
        return f"denied by {one_line(event.rule, 64)}{reason}"
    if event.decision == "denied":
        return f"denied by {one_line(event.by, 64) or 'a person'}"
    return _UNDECIDED.get(event.decision, "")
