from __future__ import annotations

from typing import get_args

from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import agent_events, events
from ironcurtain.session.server_events import ServerDown
from ironcurtain.text.columns import unstyled
from ironcurtain.view.events import EventLine, Severity, describe
from tests.session.test_events import make_event
from tests.view.strategies import harmful, session_events

ESCALATION = events.EscalationRaised(
    number=3,
    call_id="c1",
    server="git",
    tool="push",
    arguments={},
    digest="d",
    rule="r",
    reason="why",
    raised_at=0.0,
    expires_at=1.0,
)

MARKED: dict[events.SessionEvent, str] = {
    events.ToolCallRaised(call_id="c1", server="git", tool="push", arguments="a=b"): "call c1 git.push a=b",
    events.ToolDecision(call_id="c1", decision="escalate", rule="r"): "call c1 escalate [r]",
    events.ToolDecision(call_id="c1", decision="approved", by="ada"): "call c1 approved by ada",
    events.ToolFinished(call_id="c1", status="success", size=9): "call c1 ended: success after 0 ms, 9 bytes",
    events.StepFinished(step=2, input_tokens=3, output_tokens=4): "model request 2: 3 tokens in, 4 out",
    events.StepFinished(step=3): "model request 3: the model did not say how many tokens",
    events.RequestRefused(host="h", method="GET", path="/p", reason="no"): "request refused: GET h/p: no",
    events.RequestRefused(host="", method="", path="", reason="invalid"): "request refused: invalid",
    events.EscalationClosed(number=3, outcome="expired"): ("escalation 3: expired, nobody decided in time"),
}


def line_of(event: events.SessionEvent) -> EventLine:
    """:returns: the words for an event that has some."""
    found = describe(event)
    assert found is not None
    return found


class CallTests(SynchronousTestCase):
    def test_events_that_call_a_person_ring(self) -> None:
        for event, text in (
            (ESCALATION, "escalation 3: git.push"),
            (events.BudgetExhausted(message="used up"), "used up"),
            (events.ProxyDown(proxy="MCP", reason="gone"), "the MCP proxy is dead: gone"),
        ):
            line = line_of(event)
            self.assertEqual((line.logged, line.rings, line.marked), (text, True, False))

    def test_calls_requests_and_decisions_are_marked_in_recordings(self) -> None:
        for event, text in MARKED.items():
            line = line_of(event)
            self.assertEqual((line.logged, line.rings, line.marked), (text, False, True))

    def test_other_events_neither_ring_nor_leave_a_mark(self) -> None:
        for event in (events.StateChanged(state="ready"), events.Progress(text="x")):
            line = line_of(event)
            self.assertEqual((line.rings, line.marked), (False, False))


class WordsTests(SynchronousTestCase):
    def test_every_event_but_pieces_of_others_has_words(self) -> None:
        made = [make_event(kind) for kind in get_args(events.SessionEvent)]
        silent = {type(event) for event in made if describe(event) is None}  # type: ignore[arg-type]
        pieces = {events.AgentText, events.CodeStarted, agent_events.AgentActivity, agent_events.AgentTextDropped}
        self.assertEqual(silent, pieces)

    @given(session_events)
    def test_the_line_of_a_screen_is_escaped(self, event: events.SessionEvent) -> None:
        line = describe(event)
        self.assertEqual(harmful("" if line is None else unstyled(line.line)), [])

    def test_what_helps_against_a_fault_is_never_cut(self) -> None:
        for event in (
            ServerDown(server="git", reason=f"{'x' * 3000}: sysctl kernel.unprivileged_userns_clone=1"),
            events.ProxyDown(proxy="mitm", reason=f"{'x' * 3000} sysctl kernel.unprivileged_userns_clone=1"),
        ):
            self.assertIn("sysctl kernel.unprivileged_userns_clone=1", line_of(event).shown)

    def test_a_scope_is_never_cut(self) -> None:
        scope = "s.t in /" + "x/" * 900
        self.assertIn(scope, line_of(events.EscalationClosed(number=1, outcome="approved", kept=scope)).shown)

    def test_outcomes(self) -> None:
        for outcome, by, text in (
            ("approved", "alice", "escalation 3: approved by alice"),
            ("denied", "al\x1bice", "escalation 3: denied by al\\x1bice"),
            ("withdrawn", "", "escalation 3: withdrawn, the call no longer waits"),
        ):
            self.assertEqual(line_of(events.EscalationClosed(number=3, outcome=outcome, by=by)).shown, text)

    def test_severity_follows_what_happened(self) -> None:
        for event, severity in (
            (events.EscalationClosed(number=3, outcome="approved"), Severity.GOOD),
            (events.EscalationClosed(number=3, outcome="expired"), Severity.BAD),
            (events.ToolDecision(call_id="a", decision="deny", rule="r"), Severity.BAD),
            (events.Notice(text="x"), Severity.WARNING),
            (events.Notice(text="x", routine=True), Severity.ROUTINE),
        ):
            self.assertIs(line_of(event).severity, severity)
