from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session import events
from ironcurtain.session.terminal import bell, marker

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
    events.ToolDecision(call_id="c1", decision="escalate", rule="r"): "call c1 escalate",
    events.ToolDecision(call_id="c1", decision="approved", by="ada"): "call c1 approved by ada",
    events.ToolFinished(call_id="c1", status="success"): "call c1 ended: success",
    events.StepFinished(step=2, input_tokens=3, output_tokens=4): "model request 2: 3 tokens in, 4 out",
    events.RequestRefused(host="h", method="GET", path="/p", reason="no"): "request refused: GET h/p",
    events.EscalationClosed(number=3, outcome="expired"): "escalation 3 expired",
}


class MarkerTests(SynchronousTestCase):
    def test_what_a_person_is_called_for(self) -> None:
        self.assertEqual(bell(ESCALATION), "escalation 3: git.push")
        self.assertEqual(bell(events.BudgetExhausted(message="used up")), "used up")
        self.assertEqual(bell(events.ProxyDown(proxy="MCP", reason="gone")), "the MCP proxy is dead: gone")

    def test_what_is_only_marked(self) -> None:
        for event, text in MARKED.items():
            self.assertEqual((marker(event), bell(event)), (text, ""))

    def test_all_else_is_nothing(self) -> None:
        nothing: tuple[events.SessionEvent, ...] = (events.StateChanged(state="ready"), events.Progress(text="x"))
        for event in nothing:
            self.assertEqual((marker(event), bell(event)), ("", ""))
