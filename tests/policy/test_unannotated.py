"""Tools without annotation: a person sees the whole call, unless something in it is denied."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy import Decision, ToolCall, Verdict
from ironcurtain.policy.history import CallHistory
from ironcurtain.policy.verdict import Automatic, Trace
from tests.policy.worlds import World, rule

SCHEMA = {"type": "object", "additionalProperties": True}


class UnannotatedTests(SynchronousTestCase):
    """Calls of a configured server whose tools nobody has annotated."""

    def setUp(self) -> None:
        self.world = World.make(
            {"files": {"$HOME/secrets/key": "x", "$WORKSPACE/.env": "x"}, "links": {"$WORKSPACE/link": "$HOME/secrets"}}
        )
        self.addCleanup(self.world.remove)

    def verdict(self, arguments: dict[str, Any], *rules: Any, server: str = "tickets", tool: str = "purge") -> Verdict:
        """:returns: the verdict on a call; ``tickets`` is configured."""
        engine = self.world.engine(
            rules, domains={"tickets": []}, protected=["$HOME/secrets", "$WORKSPACE/.env"], annotations={"servers": {}}
        )
        return engine.evaluate(ToolCall(server, tool, arguments), SCHEMA)

    def test_a_person_is_asked_with_all_arguments_whatever_is_allowed(self) -> None:
        arguments = {"id": 7, "deep": [{"a": "b"}], "path": "~/notes", "url": "https://a.test/"}
        allow = rule("all", "allow")
        named = rule("named", "allow", server=["tickets"], tool=["purge"])
        for rules in ((), (allow,), (named,)):
            verdict = self.verdict(arguments, *rules)
            self.assertEqual((verdict.decision, verdict.rule), (Decision.ESCALATE, "structural-unannotated"))
            self.assertEqual(verdict.arguments, arguments)
            self.assertEqual((verdict.automatic, verdict.approvals), (Automatic.NEVER, 1))
            self.assertIn("has no annotation", verdict.reason)

    def test_a_server_that_nobody_configured_is_denied(self) -> None:
        verdict = self.verdict({}, rule("all", "allow"), server="other")
        self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "missing-annotation"))

    def test_arguments_that_the_schema_refuses_are_denied(self) -> None:
        engine = self.world.engine(domains={"tickets": []})
        verdict = engine.evaluate(ToolCall("tickets", "purge", {"x": 1}), {"type": "object", "properties": {}})
        self.assertEqual(verdict.rule, "invalid-arguments")
        self.assertEqual(engine.evaluate(ToolCall("tickets", "purge", {}), None).rule, "unknown-tool")

    def test_a_protected_path_anywhere_in_the_arguments_is_denied(self) -> None:
        home = self.world.home
        for path in (
            "~/secrets/key",
            f"{home}/secrets",
            f"{home}/x/../secrets/key",
            f"file://{home}/secrets/key",
            "/workspace/link/key",
            "link/key",
            ".env",
            "/workspace/.env",
            "/proc/self/root" + f"{home}/secrets/key",
        ):
            for arguments in ({"a": path}, {"a": ["x", {"b": path}]}, {"a": {path: 1}}):
                verdict = self.verdict(arguments, rule("all", "allow"))
                self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "structural-protected-path"), path)

    def test_what_a_rule_denies_is_denied(self) -> None:
        paths = {"roles": ["read-path"], "within": "~/docs"}
        domains = {"roles": ["fetch-url"], "allowed": ["*.evil.test"]}
        lists = [{"roles": ["email-address"], "allowed": ["eve@evil.test"], "matchType": "emails"}]
        for conditions, bad, good in (
            ({"server": ["tickets"]}, {}, None),
            ({"tool": ["purge"]}, {}, None),
            ({"server": ["other"]}, None, {}),
            ({"tool": ["other"]}, None, {}),
            ({"paths": paths}, {"a": [{"b": "~/docs/x"}]}, {"a": "~/other"}),
            ({"paths": {**paths, "within": "/workspace"}}, {"a": "./x"}, {"a": "x", "b": "https://a.test/x"}),
            ({"domains": domains}, {"a": ["https://x.evil.test/"]}, {"a": "https://ok.test/", "b": "no address"}),
            ({"lists": lists}, {"a": "EVE@evil.test"}, {"a": "ann@ok.test"}),
            ({"roles": ["delete-path"]}, None, {"a": "~/x"}),
        ):
            for arguments, expected in ((bad, "deny"), (good, "escalate")):
                if arguments is not None:
                    verdict = self.verdict(arguments, rule("no", "deny", **conditions))
                    self.assertEqual(str(verdict.decision), expected, (conditions, arguments))
                    self.assertEqual(verdict.rule, "no" if expected == "deny" else "structural-unannotated")

    def test_a_rule_that_asks_two_people_asks_two(self) -> None:
        two = {**rule("two", "escalate", server=["tickets"]), "approvals": 2}
        verdict = self.verdict({}, two)
        self.assertEqual((verdict.approvals, verdict.asking), (2, ("structural-unannotated", "two")))

    def test_a_rule_that_remembers_denies_once_its_time_has_come(self) -> None:
        after = rule("no", "deny", server=["tickets"], after={"server": ["web"]})
        engine = self.world.engine([after], domains={"tickets": []}, annotations={"servers": {}})
        call = ToolCall("tickets", "purge", {})
        for history, expected in ((CallHistory(), "escalate"), (CallHistory().made("web", "get", 1.0), "deny")):
            self.assertEqual(str(engine.evaluate(call, SCHEMA, history=history).decision), expected)

    def test_commands_that_judge_without_servers_say_the_same(self) -> None:
        engine = self.world.engine(domains={"tickets": []}, annotations={"servers": {}})
        trace = Trace()
        verdict = engine.evaluate_assumed(ToolCall("tickets", "purge", {"a": 1}), trace=trace)
        self.assertEqual(verdict.rule, "structural-unannotated")
        self.assertEqual([step.check for step in trace.steps], ["structural-unannotated"])

    @settings(max_examples=100, deadline=None, database=None)
    @given(
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda inner: st.lists(inner, max_size=3)),
            max_size=3,
        )
    )
    def test_no_argument_makes_it_allowed(self, arguments: dict[str, Any]) -> None:
        verdict = self.verdict(arguments, rule("all", "allow"))
        self.assertIn(verdict.decision, (Decision.ESCALATE, Decision.DENY))
        self.assertEqual(verdict.arguments, arguments)
