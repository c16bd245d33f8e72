"""Requests that get a token of the person."""

from __future__ import annotations

from ironcurtain.escalation import Outcome
from ironcurtain.network.judge import AccountUse
from tests.mcp_proxy.test_network_gate import AGENT, NetworkGateCase
from tests.policy.test_network import rule


class AccountRequestTests(NetworkGateCase):
    def test_each_request_with_a_token_of_the_person_is_asked_alone(self) -> None:
        self.make(rule("hosts", "allow", "a.test"))
        judge = self.gate.judge(AGENT)
        uses = [AccountUse("GitHub", body={"title": title}) for title in ("a", "b")]
        answers = [self.start(judge.request("POST", "https://a.test/x", use)) for use in uses]
        first, second = self.escalations.pending()
        self.assertEqual(
            (first.request.arguments["account"], first.request.arguments["body"]), ("GitHub", {"title": "a"})
        )
        self.assertIsNone(first.request.scope)  # an approval cannot be kept for other bodies
        self.assertNotEqual(first.request.digest, second.request.digest)
        self.assertIn("with your GitHub token", first.request.reason)
        self.assertIn("once means this request only", first.request.reason)
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertIsNone(self.successResultOf(answers[0]))
        self.assertNoResult(answers[1])
        self.escalations.decide(2, Outcome.DENIED, "ada")
        self.assertEqual(self.code(answers[1]), "denied-by-person")
        self.assertNoResult(self.start(judge.request("POST", "https://a.test/x", AccountUse("GitHub"))))

    def test_settings_allow_reading_with_a_token_unless_a_rule_denies(self) -> None:
        self.make(rule("hosts", "allow", "a.test"))
        judge = self.gate.judge(AGENT)
        self.assertEqual(
            self.code(self.start(judge.request("GET", "https://a.test/x", AccountUse("GitHub", True)))), ""
        )
        self.make(rule("hosts", "allow", "a.test"), rule("no", "deny", "a.test", tool="request"))
        judge = self.gate.judge(AGENT)
        self.assertNotEqual(
            self.code(self.start(judge.request("GET", "https://a.test/x", AccountUse("GitHub", True)))), ""
        )
