"""
The events of a session as spans: a trace for each message, with its model requests, tool calls and approvals.

Nothing of texts, arguments and paths is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ironcurtain.session import events
from ironcurtain.traces.context import SPAN_BYTES, TRACE_BYTES
from ironcurtain.traces.otlp import Attribute, Export, ExportedSpan

UNKNOWN = "unknown"
"""The outcome of what had not ended when the session did."""

_GOOD = frozenset(("success", "approved"))


class _Open(msgspec.Struct):
    """A span that has not ended."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    start: float
    attributes: dict[str, Attribute] = msgspec.field(default_factory=dict)

    def ended(self, time: float, outcome: str = "", **more: Attribute) -> ExportedSpan:
        given = self.attributes | {f"ironcurtain.{name}": value for name, value in more.items()}
        if outcome:
            given["ironcurtain.outcome"] = outcome
        kept = {name: value for name, value in given.items() if value != ""}
        failed = bool(outcome) and outcome not in _GOOD
        return ExportedSpan(self.trace_id, self.span_id, self.parent, self.name, self.start, time, kept, failed)


class SessionSpans:
    """
    Translates the events of one session. Any order of events is permitted.

    :param number: the session's.
    :param kind: the session's.
    :param new_id: gives random bytes in hexadecimal.
    """

    def __init__(self, number: int, kind: str, new_id: Callable[[int], str]) -> None:
        self._session: dict[str, Attribute] = {"ironcurtain.session.number": number, "ironcurtain.session.kind": kind}
        self._new_id = new_id
        self._turn: _Open | None = None
        self._calls: dict[str, _Open] = {}
        self._approvals: dict[int, _Open] = {}
        self._idle_since = 0.0
        """Since when the model may have been asked: the last event that its request can follow."""

    def feed(self, stamped: events.Stamped) -> list[ExportedSpan]:
        """:returns: the spans that an event ends."""
        return list(self._feed(stamped.event, stamped.time))

    def end(self, time: float) -> list[ExportedSpan]:
        """
        End what has not ended, with the outcome :data:`UNKNOWN`.

        :param time: seconds since 1970.
        """
        left = [*self._approvals.values(), *self._calls.values(), *([self._turn] if self._turn else [])]
        self._approvals, self._calls, self._turn = {}, {}, None
        return [span.ended(time, UNKNOWN) for span in left]

    def _feed(self, event: events.SessionEvent, time: float) -> Iterator[ExportedSpan]:
        match event:
            case events.TurnStarted():
                if self._turn is not None:
                    yield self._turn.ended(time, UNKNOWN)
                self._turn = self._begin("message", None, time, {"ironcurtain.turn": event.turn})
                self._idle_since = time
            case events.TurnFinished():
                if self._turn is not None:
                    yield self._turn.ended(time, (event.code or "error") if event.error else "success")
                    self._turn = None
            case events.StepFinished():
                yield self._request(event, time)
            case events.CodeFinished():
                self._idle_since = time
            case events.ToolCallRaised():
                if (lost := self._calls.pop(event.call_id, None)) is not None:
                    yield lost.ended(time, UNKNOWN)
                what = {"ironcurtain.server": event.server, "gen_ai.tool.name": event.tool}
                self._calls[event.call_id] = self._begin("tool call", self._turn, time, {**what})
            case events.ToolDecision():
                self._decided(event)
            case events.ToolFinished():
                self._idle_since = time
                if (call := self._calls.pop(event.call_id, None)) is not None:
                    yield call.ended(time, event.status, duration_ms=event.duration_ms, result_bytes=event.size)
            case events.EscalationRaised():
                if (lost := self._approvals.pop(event.number, None)) is not None:
                    yield lost.ended(time, UNKNOWN)
                about: dict[str, Attribute] = {"ironcurtain.escalation": event.number, "ironcurtain.rule": event.rule}
                above = self._calls.get(event.call_id, self._turn)
                self._approvals[event.number] = self._begin("approval", above, time, about)
            case events.EscalationClosed():
                if (approval := self._approvals.pop(event.number, None)) is not None:
                    yield approval.ended(time, event.outcome, by=event.by)

    def _begin(self, name: str, above: _Open | None, time: float, attributes: dict[str, Attribute]) -> _Open:
        trace_id = above.trace_id if above is not None else self._new_id(TRACE_BYTES)
        parent = above.span_id if above is not None else ""
        return _Open(name, trace_id, self._new_id(SPAN_BYTES), parent, time, self._session | attributes)

    def _request(self, event: events.StepFinished, time: float) -> ExportedSpan:
        # Only its end is an event. Within a turn, it began when nothing else was left to wait for.
        start = self._idle_since if self._turn is not None else time
        self._idle_since = time
        attributes: dict[str, Attribute] = {
            "ironcurtain.step": event.step,
            "gen_ai.usage.input_tokens": event.input_tokens,
            "gen_ai.usage.output_tokens": event.output_tokens,
        }
        if event.cost is not None:
            attributes["ironcurtain.cost_usd"] = event.cost
        return self._begin("model request", self._turn, start, attributes).ended(time)

    def _decided(self, event: events.ToolDecision) -> None:
        if (call := self._calls.get(event.call_id)) is None:
            return
        if "ironcurtain.decision" not in call.attributes:
            call.attributes |= {"ironcurtain.decision": event.decision, "ironcurtain.rule": event.rule}
        else:  # of a person, or by an approval that was kept
            call.attributes |= {"ironcurtain.approval": event.decision, "ironcurtain.by": event.by}


class ExportedSession:
    """
    Exports the spans of a session while it runs.

    :param log: the session's.
    :param now: seconds since 1970.
    """

    def __init__(
        self,
        log: events.EventLog,
        spans: SessionSpans,
        export: Export,
        now: Callable[[], float],
    ) -> None:
        self._log, self._spans, self._export, self._now = log, spans, export, now
        self._read, self._unwatch = log.last, log.watch(self._wake)

    def stop(self) -> None:
        """End the spans that have not ended."""
        self._unwatch()
        for span in self._spans.end(self._now()):
            self._export(span)

    def _wake(self) -> None:
        for stamped in self._log.after(self._read):
            self._read = stamped.sequence
            for span in self._spans.feed(stamped):
                self._export(span)
