"""Commands that judge recorded connections, and checks of rules about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.check import check
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.explain import explain
from ironcurtain.policy.loading import compiled_policy, default_annotations, tool_annotations
from ironcurtain.policy.network import ASK_RULE
from ironcurtain.policy.recorded import SessionRecords
from ironcurtain.policy.replay import ReplayReport, replay
from ironcurtain.policy.rules import Policy
from ironcurtain.policy.suggest import Suggestion, answered_calls, suggest
from ironcurtain.policy.verdict import ToolCall
from tests.policy.test_network import HOME, PATHS, connect, engine, rule
from tests.policy.test_replay import call_record


class OfflineTests(SynchronousTestCase):
    """Commands that judge recorded connections."""

    def records(self, *hosts: str, outcome: str = "approved", rule: str = ASK_RULE) -> list[dict[str, Any]]:
        """:returns: the records of a session in which these connections were asked."""
        found: list[dict[str, Any]] = [{"kind": "session", "workspace": PATHS.host}]
        for number, host in enumerate(hosts):
            name, _, port = host.partition(":")
            arguments = {"host": name, "port": int(port), "party": "the agent"}
            call = {**call_record("network", "connect", arguments, "escalate", rule), "callId": str(number)}
            found += [
                call,
                {"kind": "decision", "callId": str(number), "outcome": outcome, "by": "ada", "number": number},
            ]
        return found

    def test_replay_judges_recorded_connections(self) -> None:
        report = ReplayReport()
        calls = SessionRecords(default_annotations()).calls(self.records("a.test:443", "b.test:443", "127.0.0.1:80"))
        replay(report, "1", calls, lambda place: engine(rule("yes", "allow", "a.test"), rule("no", "deny")))
        self.assertEqual(
            sorted(report.changes),
            [
                ("network", "connect", "escalate", ASK_RULE, "allow", "yes"),
                ("network", "connect", "escalate", ASK_RULE, "deny", "no"),
            ],
        )
        self.assertEqual((report.same, dict(report.undecided)), (0, {}))

    def test_suggestion_names_hosts_ports_and_parties(self) -> None:
        records = self.records("a.test:443", "a.test:443", "db.test:5432")
        answered = answered_calls("1", records, SessionRecords(default_annotations()).calls)
        policy = compiled_policy({"rules": []})

        def engines(policy: Policy) -> Callable[[str], PolicyEngine]:
            return lambda place: PolicyEngine(policy, default_annotations(), paths=PATHS, home=HOME)

        [found] = suggest(policy, answered, engines, 2)
        assert isinstance(found, Suggestion), found
        [only] = found.rules
        assert only.conditions.domains is not None
        self.assertEqual(only.conditions.domains.allowed, ("a.test:443", "db.test:5432"))
        judge = PolicyEngine(type(policy)(rules=found.rules), default_annotations(), paths=PATHS, home=HOME)
        self.assertEqual(connect(judge, "db.test", 5432).decision, "allow")
        for other in (connect(judge, "db.test"), connect(judge, "a.test", 443, "server x"), connect(judge, "c.test")):
            self.assertEqual(other.decision, "escalate")
        self.assertEqual(check(type(policy)(rules=found.rules), default_annotations()), [])

    def test_explanation_shows_the_canonical_host(self) -> None:
        text = explain(engine(), ToolCall("network", "connect", {"host": "API.test."})).text()
        self.assertIn("host is judged as proxy-domain: api.test:443", text)
        self.assertIn("host is forwarded as api.test", text)
        self.assertIn(f"escalate by {ASK_RULE}", text)


class CheckTests(SynchronousTestCase):
    def found(self, *rules: dict[str, Any], servers: Any = None) -> list[str]:
        """:returns: severities and codes."""
        policy = compiled_policy({"rules": list(rules)})
        if servers is not None:
            policy = type(policy)(rules=policy.rules, annotations=tool_annotations({"servers": servers}))
        return [f"{each.severity} {each.code}" for each in check(policy, default_annotations())]

    def test_mistakes_in_rules(self) -> None:
        self.assertEqual(self.found(rule("a", "allow", "a.test", "b.test:22", "[::1]:1")), [])
        self.assertEqual(
            self.found(rule("a", "deny", tool="connects")), ["warning unknown-tool", "error never-matches"]
        )
        for pattern in ("*", "*:22", "*.com:443"):
            self.assertEqual(self.found(rule("a", "allow", pattern)), ["warning wildcard"], pattern)
        of_fetch = {"server": ["fetch"], "domains": {"roles": ["fetch-url"], "allowed": ["a.test:1"]}}
        self.assertEqual(self.found({"name": "a", "if": of_fetch, "then": "deny"}), ["error no-domain"])

    def test_annotations_of_the_server_are_refused(self) -> None:
        own = {"network": {"tools": [{"toolName": "connect", "args": {"host": ["none"]}}]}}
        self.assertEqual(self.found(servers=own), ["error own-server"])
