"""Requests whose connection is decrypted, each judged by itself."""

from __future__ import annotations

from ironcurtain.escalation import Outcome
from tests.mcp_proxy.test_network_gate import NetworkGateCase
from tests.policy.test_network import rule


class RequestTests(NetworkGateCase):
    def test_request_over_an_allowed_connection_needs_no_rule(self) -> None:
        self.make(rule("yes", "allow", "a.test"))
        self.assertEqual(self.code(self.connect()), "")
        for number in range(100):
            self.assertEqual(self.code(self.request(f"https://a.test/{number}")), "")
        self.assertEqual(self.code(self.request("https://a.test/", "POST")), "")
        tools = [(each["tool"], each["arguments"].get("method")) for each in self.records("call")]
        self.assertEqual(tools, [("connect", None), ("request", "GET"), ("request", "POST")])

    def test_request_whose_connection_was_not_judged_waits_for_it(self) -> None:
        self.make()
        answer = self.request("http://a.test/x")
        self.assertEqual(self.pending().request.arguments["port"], 80)
        self.assertNoResult(answer)
        self.escalations.decide(1, Outcome.DENIED, "ada")
        self.assertEqual(self.code(answer), "denied-by-person")

    def test_rule_about_requests_asks_for_each_address(self) -> None:
        self.make(rule("yes", "allow", "a.test"), rule("ask", "escalate", "a.test", tool="request"))
        first, second = self.request("https://a.test/1", "POST"), self.request("https://a.test/2", "POST")
        self.assertEqual(len(self.escalations.pending()), 2)
        self.escalations.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.code(first), "")
        self.assertNoResult(second)
        self.escalations.decide(2, Outcome.APPROVED, "ada", keep=True)
        self.assertEqual(self.code(self.request("https://a.test/3", "POST")), "")
        self.assertNoResult(self.request("https://a.test/3", "DELETE"))

    def test_unclear_address_is_refused(self) -> None:
        self.make()
        for url in ("https://0x7f.1/", "https://a.test\\@b.test/", "x"):
            self.assertEqual(self.code(self.request(url)), "denied-by-rule")
