"""The events of a session as spans."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import SessionError
from ironcurtain.session import events
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.session import Session
from ironcurtain.session.spans import UNKNOWN, SessionSpans
from ironcurtain.traces.otlp import ExportedSpan
from tests.audit.doubles import scratch
from tests.session.doubles import World, request
from tests.session.test_events import make_event


def make_spans() -> SessionSpans:
    """:returns: those of a session, whose ids count."""
    ids = itertools.count(1)
    return SessionSpans(4, "builtin", lambda size: f"{next(ids):0{2 * size}x}")


RAISED: dict[str, Any] = {
    "number": 1, "call_id": "c1", "server": "git", "tool": "push", "arguments": {"remote": "secret"}, "digest": "d",
    "rule": "push", "reason": "secret", "raised_at": 1.0, "expires_at": 2.0, "scope": "secret",
}  # fmt: skip

TURN: list[tuple[float, events.SessionEvent]] = [
    (1.0, events.TurnStarted(turn=2, message="the secret")),
    (3.0, events.StepFinished(step=1, input_tokens=10, output_tokens=2, cost=0.5)),
    (3.0, events.CodeStarted(code="secret")),
    (4.0, events.ToolCallRaised(call_id="c1", server="git", tool="push", arguments="secret")),
    (4.0, events.ToolDecision(call_id="c1", decision="escalate", rule="push", reason="secret")),
    (4.5, events.EscalationRaised(**RAISED)),
    (9.0, events.EscalationClosed(number=1, outcome="approved", by="local:ada", kept="secret")),
    (9.0, events.ToolDecision(call_id="c1", decision="approved", by="local:ada")),
    (9.5, events.ToolFinished(call_id="c1", status="success", duration_ms=500.0, size=7)),
    (10.0, events.CodeFinished()),
    (12.0, events.StepFinished(step=2, input_tokens=20, output_tokens=3)),
    (12.0, events.TurnFinished(turn=2, answer="secret")),
]


def fed(spans: SessionSpans, given: list[tuple[float, events.SessionEvent]]) -> list[ExportedSpan]:
    """:returns: the spans that events end."""
    stamped = [events.Stamped(number, time, event) for number, (time, event) in enumerate(given, 1)]
    return [span for one in stamped for span in spans.feed(one)]


class TurnTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.first, self.approval, self.call, self.second, self.turn = fed(make_spans(), TURN)

    def test_a_message_is_a_trace(self) -> None:
        found = [(span.name, span.start, span.end) for span in (self.first, self.call, self.second, self.turn)]
        self.assertEqual(
            found,
            [
                ("model request", 1.0, 3.0),
                ("tool call", 4.0, 9.5),
                ("model request", 10.0, 12.0),
                ("message", 1.0, 12.0),
            ],
        )
        self.assertEqual({span.parent for span in (self.first, self.call, self.second)}, {self.turn.span_id})
        everything = (self.first, self.approval, self.call, self.second, self.turn)
        self.assertEqual({span.trace_id for span in everything}, {self.turn.trace_id})
        self.assertEqual((self.turn.parent, len({span.span_id for span in everything})), ("", 5))

    def test_an_approval_is_below_its_call(self) -> None:
        self.assertEqual((self.approval.name, self.approval.parent), ("approval", self.call.span_id))
        self.assertEqual((self.approval.start, self.approval.end), (4.5, 9.0))
        self.assertEqual(self.approval.attributes["ironcurtain.by"], "local:ada")
        self.assertEqual(self.approval.attributes["ironcurtain.outcome"], "approved")

    def test_what_was_decided_and_used_is_in_the_attributes(self) -> None:
        expected = {
            "ironcurtain.session.number": 4,
            "ironcurtain.session.kind": "builtin",
            "ironcurtain.server": "git",
            "gen_ai.tool.name": "push",
            "ironcurtain.decision": "escalate",
            "ironcurtain.rule": "push",
            "ironcurtain.approval": "approved",
            "ironcurtain.by": "local:ada",
            "ironcurtain.outcome": "success",
            "ironcurtain.duration_ms": 500.0,
            "ironcurtain.result_bytes": 7,
        }
        self.assertEqual(self.call.attributes, expected)
        self.assertEqual(self.first.attributes["gen_ai.usage.input_tokens"], 10)
        self.assertEqual(self.first.attributes["ironcurtain.cost_usd"], 0.5)

    def test_no_text_leaves_the_session(self) -> None:
        self.assertNotIn("secret", str([self.first, self.approval, self.call, self.second, self.turn]))

    def test_a_failed_turn_has_the_code_of_its_error(self) -> None:
        failed = events.TurnFinished(turn=1, error="no secret", code="MESSAGE_FAILED")
        (turn,) = fed(make_spans(), [(1.0, events.TurnStarted(turn=1, message="x")), (2.0, failed)])
        self.assertEqual((turn.failed, turn.attributes["ironcurtain.outcome"]), (True, "MESSAGE_FAILED"))
        self.assertNotIn("secret", str(turn))

    def test_a_call_outside_a_turn_is_a_trace_of_its_own(self) -> None:
        (_, call) = fed(make_spans(), TURN[3:9])
        self.assertEqual((call.name, call.parent), ("tool call", ""))


class ExportedTests(SynchronousTestCase):
    """Sessions of a process whose settings want spans exported."""

    def setUp(self) -> None:
        self.world, self.found = World(scratch(self)), list[ExportedSpan]()
        self.world.manager.services = replace(self.world.services, export=lambda telemetry, proxies: self.found.append)

    def create(self) -> Session:
        """:returns: a new session."""
        return self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request())))

    def test_spans_are_exported_while_a_session_runs_and_ended_with_it(self) -> None:
        session = self.create()
        self.successResultOf(session.send("hello"))
        self.assertEqual([span.name for span in self.found], ["message"])
        call = events.ToolCallRaised(call_id="c1", server="git", tool="push", arguments="")
        session.events.emit(call)
        self.assertEqual(len(self.found), 1)
        self.successResultOf(Deferred.fromCoroutine(session.close("enough")))
        self.assertEqual(self.found[1].attributes["ironcurtain.outcome"], UNKNOWN)
        session.events.emit(call)
        self.assertEqual(len(self.found), 2)

    def test_a_session_that_does_not_start_is_not_watched_any_more(self) -> None:
        self.world.next_agent.trouble = RuntimeError("no agent")
        made: list[Session] = []
        creating = Deferred.fromCoroutine(self.world.manager.create(request(), made=made.append))
        self.failureResultOf(creating, SessionError)
        made[0].events.emit(TURN[0][1])
        made[0].events.emit(TURN[-1][1])
        self.assertEqual(self.found, [])

    def test_a_kind_that_exports_its_own_spans_has_no_others(self) -> None:
        kinds = {"plain": replace(self.world.kind, own_spans=True)}
        self.world.manager = SessionManager(kinds, self.world.manager.services, lambda request: Path())
        self.successResultOf(self.create().send("hello"))
        self.assertEqual(self.found, [])


KINDS = sorted(get_args(events.SessionEvent), key=lambda kind: str(kind.__name__))
MADE = [make_event(kind) for kind in KINDS]
ENDINGS: list[Any] = [event for _, event in TURN] + MADE
STARTS = events.TurnStarted | events.ToolCallRaised | events.EscalationRaised | events.StepFinished


class AnyOrderTests(SynchronousTestCase):
    @given(st.lists(st.tuples(st.floats(0, 1e10), st.sampled_from(ENDINGS)), max_size=40))
    def test_each_span_that_begins_ends_once(self, given: list[tuple[float, events.SessionEvent]]) -> None:
        spans = make_spans()
        ended = fed(spans, given)
        left = spans.end(1e10)
        begun = sum(isinstance(event, STARTS) for _, event in given)
        self.assertEqual(len({span.span_id for span in ended + left}), begun)
        self.assertEqual(len(ended + left), begun)
        self.assertEqual({span.attributes["ironcurtain.outcome"] for span in left} - {UNKNOWN}, set())
        self.assertEqual(spans.end(1e10), [])
