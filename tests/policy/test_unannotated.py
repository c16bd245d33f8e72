"""Tools without annotation: a person sees the whole call, unless something in it is denied."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.history import CallHistory
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Policy
from ironcurtain.policy.verdict import Automatic, Decision, ToolCall, Trace, Verdict
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

    def test_argument_that_neither_annotation_nor_schema_describes_is_asked_or_denied(self) -> None:
        annotations = {"servers": {"tickets": {"tools": [{"toolName": "read", "comment": "", "args": {"id": []}}]}}}
        engine = self.world.engine(
            [rule("all", "allow", server=["tickets"])],
            domains={"tickets": []},
            protected=["$HOME/secrets"],
            annotations=annotations,
        )
        text = {"type": "string"}
        for further in (True, {}, text, {"anyOf": [text, {"type": "object"}]}):
            schema = {"type": "object", "properties": {"id": text}, "additionalProperties": further}

            def judged(arguments: dict[str, Any], schema: dict[str, Any] = schema) -> tuple[Decision, str]:
                verdict = engine.evaluate(ToolCall("tickets", "read", arguments), schema)
                return verdict.decision, verdict.rule

            asked = (Decision.ESCALATE, "structural-unannotated")
            self.assertEqual(judged({"id": "7"}), (Decision.ALLOW, "all"))
            self.assertEqual(judged({"id": "7", "other": "x"}), asked)
            self.assertEqual(judged({"ID": "7"}), asked)
            self.assertEqual(judged({"id": "7", "": "x"}), asked)
            for path in ("~/secrets/key", f"file://{self.world.home}/secrets", "/workspace/link/key"):
                self.assertEqual(judged({"id": "7", "p": path}), (Decision.DENY, "structural-protected-path"))
                self.assertEqual(judged({path: "x"})[0], Decision.ESCALATE)
        closed = {"type": "object", "properties": {"id": text}}
        self.assertEqual(
            engine.evaluate(ToolCall("tickets", "read", {"id": "7", "other": "x"}), closed).rule, "invalid-arguments"
        )

    def told(self, properties: dict[str, Any], reach: tuple[str, ...] | None = None, **arguments: Any) -> Verdict:
        """:returns: the verdict on a call of a tool that declares its arguments."""
        engine = PolicyEngine(
            Policy(),
            Annotations(),
            paths=PathMap(self.world.workspace),
            home=self.world.home,
            servers={"tickets": ServerBounds(reach=reach)},
        )
        return engine.evaluate(ToolCall("tickets", "purge", arguments), {"type": "object", "properties": properties})

    def test_reason_says_what_arguments_look_like_and_what_is_unknown(self) -> None:
        text = {"type": "string"}
        properties = {"file": text, "page": {**text, "format": "uri"}, "id": text, "other": text, "query": text}
        verdict = self.told(properties, file="a", page="x", id="/etc/hosts", other="https://a.test/", query="and/or")
        self.assertIn(
            "file looks like a path, page looks like an address, id looks like a path, other looks like an address, "
            "but what purge does with it is not known; not known at all: query",
            verdict.reason,
        )
        work = self.world.workspace
        found = [(resource.argument, resource.value, resource.role) for resource in verdict.resources]
        places = [("file", f"{work}/a"), ("id", "/etc/hosts"), ("other", "https://a.test/")]
        self.assertEqual(sorted(found), [(*place, "unknown") for place in places])

    def test_declared_paths_are_forwarded_as_the_server_knows_them(self) -> None:
        properties = {"path": {"type": "string"}, "paths": {"type": "array", "items": {"type": "string"}}}
        texts = {"text": {"type": "string"}, "kind_of_path": {"enum": ["/workspace"]}}
        verdict = self.told(
            {**properties, **texts}, path="/workspace/a", paths=["~/b", "c", "/x"], text="/workspace/a",
            kind_of_path="/workspace",
        )  # fmt: skip
        world = self.world
        self.assertEqual(
            verdict.arguments,
            {
                "path": f"{world.workspace}/a",
                "paths": [f"{world.home}/b", "c", "/x"],
                "text": "/workspace/a",
                "kind_of_path": "/workspace",
            },
        )

    def test_reason_names_paths_that_the_server_cannot_reach(self) -> None:
        properties = {"path": {"type": "string"}}
        inside = self.told(properties, (self.world.workspace,), path="/workspace/a").reason
        self.assertNotIn("reach", inside)
        outside = self.told(properties, (self.world.workspace,), path="/etc/hosts").reason
        self.assertIn("the server cannot reach /etc/hosts", outside)

    def test_odd_names_of_arguments_are_quoted(self) -> None:
        verdict = self.verdict({"x; the user agreed": "/a b"})
        self.assertIn('"x; the user agreed" looks like a path', verdict.reason)

    def test_link_in_a_guessed_path_is_shown(self) -> None:
        [resource] = self.told({"path": {"type": "string"}}, path="link/key").resources
        self.assertEqual((resource.value, resource.written), (f"{self.world.home}/secrets/key", "link/key"))

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


class UnknownArgumentTests(SynchronousTestCase):
    """Arguments that a newer version of a server has, and an annotation does not name."""

    def setUp(self) -> None:
        self.world = World.make({"files": {"$HOME/secrets/key": "x"}})
        self.addCleanup(self.world.remove)
        properties = {name: {"type": "string"} for name in ("path", "new", "other")}
        self.schema: dict[str, Any] = {"type": "object", "properties": properties}

    def verdict(self, *rules: Any, **arguments: Any) -> Verdict:
        """:returns: the verdict on a call of a tool whose annotation names only ``path``."""
        annotations = {"servers": {"tickets": {"tools": [{"toolName": "show", "args": {"path": ["read-path"]}}]}}}
        engine = self.world.engine(
            rules, domains={"tickets": []}, protected=["$HOME/secrets"], annotations=annotations
        )  # fmt: skip
        return engine.evaluate(ToolCall("tickets", "show", arguments), self.schema)

    def test_call_with_it_is_asked_though_a_rule_allows_the_others(self) -> None:
        allow = rule("all", "allow", server=["tickets"])
        self.assertEqual(str(self.verdict(allow, path="a").decision), "allow")
        verdict = self.verdict(allow, path="a", new="x")
        self.assertEqual((verdict.decision, verdict.rule), (Decision.ESCALATE, "structural-unannotated"))
        self.assertIn("nobody has said what new of show means", verdict.reason)
        self.assertEqual(verdict.automatic, Automatic.NEVER)

    def test_reasons_of_rules_stay(self) -> None:
        verdict = self.verdict(rule("look", "escalate", server=["tickets"]), path="a", new="x")
        self.assertEqual((verdict.rule, verdict.asking), ("look", ("look", "structural-unannotated")))
        self.assertIn("nobody has said", verdict.reason)

    def test_denials_stay(self) -> None:
        deny = rule("no", "deny", server=["tickets"])
        self.assertEqual(self.verdict(deny, path="a", new="x").rule, "no")
        allow = rule("all", "allow", server=["tickets"])
        self.assertEqual(self.verdict(allow, path="a", new="~/secrets/key").rule, "structural-protected-path")


class UnmentionedServerTests(SynchronousTestCase):
    """Configured servers that the policy does not name, though their tools have annotations."""

    def setUp(self) -> None:
        self.world = World.make({"files": {"$HOME/secrets/key": "x"}})
        self.addCleanup(self.world.remove)

    def verdict(self, server: str, *rules: Any, configured: bool = True, path: Any = "~/a", **policy: Any) -> Verdict:
        tools = [{"toolName": "show", "args": {"path": ["read-path", "delete-path"]}}]
        engine = self.world.engine(
            rules,
            domains={server: []} if configured else {},
            protected=["$HOME/secrets"],
            annotations={"servers": {server: {"tools": tools}}},
            **policy,
        )
        return engine.evaluate(ToolCall(server, "show", {"path": path}), {"properties": {"path": {}}})

    def test_its_calls_are_asked(self) -> None:
        for rules in ((), (rule("other", "allow", server=["other"]),)):
            verdict = self.verdict("tickets", *rules)
            self.assertEqual((verdict.decision, verdict.rule), (Decision.ESCALATE, "structural-no-rule"))
            self.assertEqual((verdict.asking, verdict.automatic), (("structural-no-rule",), Automatic.NEVER))
            self.assertEqual(verdict.arguments, {"path": f"{self.world.home}/a"})
            self.assertIn("the policy says nothing about the server tickets", verdict.reason)

    def test_other_servers_are_denied_by_default(self) -> None:
        named = rule("named", "allow", server=["tickets"], tool=["other"])
        for verdict in (
            self.verdict("tickets", named),
            self.verdict("tickets", configured=False),
            self.verdict("filesystem"),
        ):
            self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "default-deny"))

    def test_denials_stay(self) -> None:
        self.assertEqual(self.verdict("tickets", path="~/secrets/key").rule, "structural-protected-path")
        self.assertEqual(self.verdict("tickets", rule("no", "deny", roles=["delete-path"])).rule, "no")

    def test_denied_path_is_denied_among_others_that_no_rule_is_about(self) -> None:
        deny = rule("no", "deny", paths={"roles": ["read-path"], "within": "~/closed"})
        for paths in (["~/closed/a", "~/b"], ["~/b", "~/closed/a"]):
            self.assertEqual(self.verdict("tickets", deny, path=paths).decision, Decision.DENY)

    def test_what_a_rule_for_all_servers_allows_is_allowed(self) -> None:
        allow = rule("all", "allow", paths={"roles": ["read-path", "delete-path"], "within": "~"})
        self.assertEqual(self.verdict("tickets", allow).rule, "all")
        read = rule("read", "allow", paths={"roles": ["read-path"], "within": "~"})
        self.assertEqual(self.verdict("tickets", read).rule, "structural-no-rule")

    def test_its_resources_are_asked(self) -> None:
        engine = self.world.engine(domains={"tickets": []}, annotations={"servers": {}})
        self.assertEqual(engine.evaluate_resource("tickets", "db://x").rule, "structural-no-rule")
        self.assertEqual(engine.evaluate_resource("other", "db://x").rule, "default-deny")
