"""How long requests may use a connection that was allowed."""

from __future__ import annotations

from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.network_words import ONCE_SECONDS
from tests.mcp_proxy.test_network_gate import NetworkGateCase
from tests.policy.test_network import rule

URL = "https://a.test/x"


class OpenConnectionTests(NetworkGateCase):
    """A connection can stay open for longer than its approval holds."""

    def approved(self) -> None:
        """Approve a connection once."""
        self.make()
        answer = self.connect()
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertIsNone(self.successResultOf(answer))

    def test_requests_are_asked_for_again_when_the_approval_is_over(self) -> None:
        self.approved()
        self.clock.advance(ONCE_SECONDS - 1)
        self.assertEqual(self.code(self.request(URL)), "")
        self.clock.advance(1)
        for _ in range(2):
            self.assertNoResult(self.request(URL))
        self.assertEqual(self.pending().request.tool, "connect")

    def test_requests_end_with_a_later_denial(self) -> None:
        self.approved()
        self.clock.advance(ONCE_SECONDS)
        second = self.connect()
        self.escalations.decide(2, Outcome.DENIED, "ada")
        self.assertEqual(self.code(second), "denied-by-person")
        for url in (URL, "https://A.test/y", "https://a.test:443/x"):
            self.assertEqual(self.code(self.request(url)), "denied-by-person")

    def test_requests_by_a_rule_need_no_further_answer(self) -> None:
        self.make(rule("open", "allow", "a.test"))
        self.assertEqual(self.code(self.connect()), "")
        self.clock.advance(100 * ONCE_SECONDS)
        self.assertEqual(self.code(self.request(URL)), "")
        self.assertEqual([each["tool"] for each in self.records("call")], ["connect", "request"])
