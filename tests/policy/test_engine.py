"""Verdicts beyond the hand-worked ones: hostile paths, protection, rules, resources, and that none raises."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.verdict import ToolCall, Verdict
from tests.policy.worlds import CASES, World, rule

LINKS = {
    "files": {"$WORKSPACE/a/f": "", "$WORKSPACE/.env": "", "$ROOT/out/g": "", "$HOME/.ssh/key": "", "$HOME/d/f": ""},
    "links": {
        "$WORKSPACE/out": "$ROOT/out",
        "$WORKSPACE/a/up": "..",
        "$WORKSPACE/ring": "ring",
        "$WORKSPACE/gone": "../out/new",
        "$WORKSPACE/key": "$HOME/.ssh/key",
        "$HOME/d/w": "$WORKSPACE",
        "$WORKSPACE/a/root": "/",
    },
}
PARTS = ["", ".", "..", "a", "f", "up", "out", "ring", "gone", "key", "root", "new", "d", "w", "workspace", "~", "\0"]
HEADS = ["", "/", "//", "~/", "~", "~nobody/", "/workspace/", "/workspace", "$WORKSPACE/", "$ROOT/out/", "/proc/self/"]


class _WorldTests(SynchronousTestCase):
    tree: dict[str, Any] = LINKS

    def setUp(self) -> None:
        self.world = World.make(self.tree)
        self.addCleanup(self.world.remove)

    def assertVerdict(self, verdict: Verdict, expected: str) -> None:
        """:param expected: decision and rule."""
        self.assertEqual(f"{verdict.decision} {verdict.rule}", expected, verdict.reason)


class PathTests(_WorldTests):
    """Where paths lead."""

    def test_what_is_free_lies_in_the_workspace(self) -> None:
        engine = self.world.engine(protected=["$WORKSPACE/.env"])
        inside = f"{self.world.workspace}/"
        free: list[str] = []

        @settings(max_examples=500, deadline=None, database=None)
        @given(st.sampled_from(HEADS), st.lists(st.sampled_from(PARTS), max_size=6))
        def contained(head: str, parts: list[str]) -> None:
            path = head + "/".join(parts)
            verdict = self.world.ask(engine, "filesystem", "write_file", {"path": path, "content": "x"})
            self.assertIn(verdict.decision, ("allow", "deny"))
            if verdict.decision == "allow":
                forwarded = verdict.arguments["path"]
                self.assertEqual(verdict.rule, "structural-sandbox-allow")
                self.assertEqual(os.path.realpath(forwarded), forwarded)
                self.assertTrue(f"{forwarded}/".startswith(inside), path)
                free.append(forwarded)

        contained()
        self.assertGreater(len(free), 20)

    def test_paths_that_cannot_be_resolved(self) -> None:
        engine = self.world.engine([rule("all", "allow", server=["filesystem"])])
        for path, expected in (
            ("ring", "deny structural-unresolvable-path"),
            ("ring/x", "deny structural-unresolvable-path"),
            ("x" * 300, "deny structural-unresolvable-path"),
            ("a\0b", "deny invalid-arguments"),
            ("\ud800", "deny invalid-arguments"),
            ("not-there/\ud800", "deny invalid-arguments"),
            ("~root/x", "deny default-deny"),
        ):
            self.assertVerdict(self.world.ask(engine, "filesystem", "read_text_file", {"path": path}), expected)

    def test_names_that_cannot_be_passed_on(self) -> None:
        os.symlink(b"\xff", f"{self.world.workspace}/bytes")
        verdict = self.world.ask(self.world.engine(), "filesystem", "read_text_file", {"path": "bytes"})
        self.assertVerdict(verdict, "deny invalid-arguments")

    def test_a_call_cannot_cost_much(self) -> None:
        paths = ["x/" * 2000] * 10_001
        verdict = self.world.ask(self.world.engine(), "filesystem", "read_multiple_files", {"paths": paths})
        self.assertVerdict(verdict, "deny invalid-arguments")
        verdict = self.world.ask(self.world.engine(), "filesystem", "read_multiple_files", {"paths": paths[:200]})
        self.assertVerdict(verdict, "allow structural-sandbox-allow")

    def test_a_resource_must_be_text(self) -> None:
        schema = {"type": "object", "properties": {"path": {}}}
        engine = self.world.engine([rule("all", "allow", server=["filesystem"])])
        for value in (1, True, {"x": 1}, [["a"]], ["a", None], [1]):
            call = ToolCall("filesystem", "read_text_file", {"path": value})
            self.assertVerdict(engine.evaluate(call, schema), "deny invalid-arguments")

    def test_links_of_our_own_process_mean_what_they_lead_to(self) -> None:
        engine = self.world.engine([rule("all", "allow", paths={"roles": ["read-path"], "within": "/"})])
        path = f"/proc/self/root{self.world.root}/out"
        verdict = self.world.ask(engine, "filesystem", "read_text_file", {"path": path})
        self.assertEqual(verdict.arguments["path"], f"{self.world.root}/out")

    def test_rules_for_directories_by_their_agent_name(self) -> None:
        within = {"roles": ["read-path"], "within": "/workspace/a"}
        engine = self.world.engine([rule("r", "allow", server=["notes"], paths=within)])
        self.assertVerdict(self.world.ask(engine, "notes", "open_note", {"path": "a/f"}), "allow r")
        self.assertVerdict(self.world.ask(engine, "notes", "open_note", {"path": "f"}), "deny default-deny")


class ProtectionTests(_WorldTests):
    """Protected paths."""

    def test_they_hold_for_every_server_and_role(self) -> None:
        engine = self.world.engine([rule("all", "allow")], protected=["~/.ssh"])
        for server, tool, arguments in (
            ("filesystem", "read_text_file", {"path": "key"}),
            ("filesystem", "write_file", {"path": "~/.ssh/new", "content": ""}),
            ("filesystem", "move_file", {"source": "a/f", "destination": "~/.ssh"}),
            ("filesystem", "move_file", {"source": "~/.ssh/key", "destination": "k"}),
            ("notes", "open_note", {"path": "~/.ssh/key"}),
            ("git", "git_status", {"path": "~/.ssh"}),
            ("fetch", "download", {"url": "https://a.test/", "dest": "~/.ssh/x"}),
            ("git", "git_clone", {"url": "$HOME/.ssh", "localPath": "x"}),
            ("git", "git_clone", {"url": "file://$HOME/%2essh", "localPath": "x"}),
        ):
            verdict = self.world.ask(engine, server, tool, arguments)
            self.assertVerdict(verdict, "deny structural-protected-path")

    def test_only_protection_from_above_spares_the_workspace(self) -> None:
        engine = self.world.engine(protected=["$ROOT", "/workspace/.env"])
        read = "filesystem", "read_text_file"
        self.assertVerdict(self.world.ask(engine, *read, {"path": "a/f"}), "allow structural-sandbox-allow")
        for path in (".env", ".env/x", "a/../.env", "$ROOT/out/g", "$HOME"):
            self.assertVerdict(self.world.ask(engine, *read, {"path": path}), "deny structural-protected-path")

    def test_what_holds_a_protected_path_cannot_go(self) -> None:
        engine = self.world.engine([rule("all", "allow")], protected=["$WORKSPACE/a/f", "~/.ssh"])
        for source in ("a", "~", "/"):
            verdict = self.world.ask(engine, "filesystem", "move_file", {"source": source, "destination": "b"})
            self.assertVerdict(verdict, "deny structural-protected-path")
        verdict = self.world.ask(engine, "filesystem", "list_directory", {"path": "~"})
        self.assertVerdict(verdict, "allow all")

    def test_what_would_hold_a_protected_path_cannot_come(self) -> None:
        """A directory that is moved there brings along what lies in it, and so would make the protected path."""
        engine = self.world.engine([rule("all", "allow")], protected=["$WORKSPACE/new/.env", "~/.config/gh", "~/.ssh"])
        for destination in ("new", "/workspace/new/", "x/../new", "~/.config"):
            verdict = self.world.ask(engine, "filesystem", "move_file", {"source": "a", "destination": destination})
            self.assertVerdict(verdict, "deny structural-protected-path")
        clone = {"url": "https://a.test/", "localPath": "new"}
        self.assertVerdict(self.world.ask(engine, "git", "git_clone", clone), "deny structural-protected-path")
        for destination in ("news", "new/other", "~/.configuration"):
            verdict = self.world.ask(engine, "filesystem", "move_file", {"source": "a", "destination": destination})
            self.assertEqual(verdict.decision, "allow", destination)

    def test_another_spelling_of_the_same_file(self) -> None:
        """Hard links stand in for a file system that ignores case."""
        engine = self.world.engine([rule("all", "allow")], protected=["$ROOT/out/g", "$ROOT/out/É"])
        self.assertVerdict(self.read(engine, "$ROOT/out/G"), "allow all")
        os.link(f"{self.world.root}/out/g", f"{self.world.root}/out/G")
        self.assertVerdict(self.read(engine, "$ROOT/out/G"), "deny structural-protected-path")
        self.assertVerdict(self.read(engine, "$ROOT/out/e\u0301"), "deny structural-protected-path")

    def read(self, engine: PolicyEngine, path: str) -> Verdict:
        """:returns: the verdict on reading one file."""
        return self.world.ask(engine, "filesystem", "read_text_file", {"path": path})

    def test_a_protected_path_in_a_circle_is_an_error(self) -> None:
        self.assertRaises(ConfigurationError, self.world.engine, protected=["$WORKSPACE/ring"])


class RuleTests(_WorldTests):
    """How rules are chosen."""

    def test_of_equal_roles_the_first_argument_of_the_annotation_counts(self) -> None:
        engine = self.world.engine(
            [
                rule("read", "allow", paths={"roles": ["read-path"], "within": "~"}),
                rule("write", "allow", paths={"roles": ["write-path"], "within": "~"}),
            ]
        )
        verdict = self.world.ask(engine, "filesystem", "replace_file", {"source": "~/a", "destination": "~/b"})
        self.assertVerdict(verdict, "allow write")

    def test_the_reason_names_every_rule_that_asks(self) -> None:
        engine = self.world.engine(
            [
                rule("read", "escalate", paths={"roles": ["read-path"], "within": "~"}),
                rule("write", "escalate", paths={"roles": ["write-path"], "within": "~"}),
            ]
        )
        verdict = self.world.ask(engine, "filesystem", "edit_file", {"path": "~/a", "edits": []})
        self.assertEqual((verdict.rule, verdict.reason), ("read", "read says so; write: write says so"))
        verdict = self.world.ask(engine, "filesystem", "read_text_file", {"path": "~/a"})
        self.assertEqual((verdict.rule, verdict.reason), ("read", "read says so"))

    def test_what_is_left_over_denies_even_after_a_deny_rule(self) -> None:
        engine = self.world.engine([rule("no", "deny", paths={"roles": ["read-path"], "within": "~/d"})])
        paths = ["~/d/f", "/etc/hosts"]
        self.assertVerdict(
            self.world.ask(engine, "filesystem", "read_multiple_files", {"paths": paths}), "deny default-deny"
        )

    def test_a_list_without_the_role_uses_its_own_values(self) -> None:
        lists = [
            {"roles": ["github-owner"], "allowed": ["@us", "Beta"], "matchType": "identifiers"},
            {"roles": ["github-repo"], "allowed": ["app"], "matchType": "identifiers"},
        ]
        named = {"us": {"values": ["ACME", "Old"], "manualAdditions": ["Gamma"], "manualRemovals": ["OLD"]}}
        engine = self.world.engine([rule("ours", "allow", lists=lists)], lists=named)
        for owner, repo, expected in (
            ("acme", "APP", "allow ours"),
            ("beta", "app", "allow ours"),
            ("GAMMA", "app", "allow ours"),
            ("old", "app", "deny default-deny"),
            ("acme", "other", "deny default-deny"),
            ("\u212aacme", "app", "deny default-deny"),
            ("", "app", "deny default-deny"),
        ):
            arguments = {"owner": owner, "repo": repo, "path": "x"}
            verdict = self.world.ask(engine, "github", "get_file", arguments)
            self.assertVerdict(verdict, expected)
            self.assertEqual(verdict.arguments, arguments)

    def test_what_is_no_text_is_on_no_list(self) -> None:
        emails = [{"roles": ["email-address"], "allowed": ["ann@a.test"], "matchType": "emails"}]
        engine = self.world.engine([rule("mail", "allow", lists=emails)])
        schema = {"type": "object", "properties": {"to": {"type": "array"}}}
        for to, expected in (
            (["ANN@A.test"], "allow mail"),
            (["ann@a.test", {"address": "eve@e.test"}], "deny default-deny"),
            (["ann@a.test,eve@e.test"], "deny default-deny"),
            ([], "deny default-deny"),
        ):
            self.assertVerdict(engine.evaluate(ToolCall("mail", "send", {"to": to}), schema), expected)

    def test_conditions_compare_as_json_does(self) -> None:
        engine = self.world.engine([rule("read", "allow", roles=["read-path"])])
        for tool, arguments, expected in (
            ("archive", {"level": 1}, "allow read"),
            ("archive", {"level": 1.0}, "allow read"),
            ("archive", {"level": True}, "deny default-deny"),
            ("archive", {"level": "1"}, "deny default-deny"),
            ("sync", {"keep": False}, "allow read"),
            ("sync", {"keep": None}, "deny default-deny"),
            ("purge", {}, "allow read"),
            ("purge", {"real": ""}, "allow read"),
            ("purge", {"real": "0"}, "deny default-deny"),
            ("purge", {"real": "x", "depth": 0}, "allow read"),
            ("purge", {"real": "x", "depth": False}, "deny default-deny"),
        ):
            verdict = self.world.ask(engine, "notes", tool, {"path": "a", **arguments})
            self.assertVerdict(verdict, expected)

    def test_domains_of_the_server_come_before_rules(self) -> None:
        engine = self.world.engine([rule("all", "allow")], domains={"fetch": ["*.ok.test"]})
        escalated = "escalate structural-domain-escalate"
        for url, expected in (
            ("https://a.ok.test/", "allow all"),
            ("https://b.test", escalated),
            ("x", "deny default-deny"),
        ):
            self.assertVerdict(self.world.ask(engine, "fetch", "http_fetch", {"url": url}), expected)

    def test_an_argument_that_the_annotation_forgot(self) -> None:
        engine = self.world.engine([rule("all", "allow")])
        schema = {"type": "object", "properties": {"path": {"type": "string"}, "root": {"type": "string"}}}
        call = ToolCall("filesystem", "read_text_file", {"path": "a/f", "root": "/"})
        self.assertVerdict(engine.evaluate(call, schema), "deny missing-annotation")

    def test_the_version_follows_what_verdicts_follow_from(self) -> None:
        one, two = (self.world.engine([rule("r", then)]).policy_version for then in ("allow", "deny"))
        self.assertRegex(one, "^[0-9a-f]{16}$")
        self.assertNotEqual(one, two)
        self.assertNotEqual(one, self.world.engine([rule("r", "allow")], protected=["/x"]).policy_version)
        self.assertEqual(one, self.world.engine([rule("r", "allow")]).policy_version)


class ResourceTests(_WorldTests):
    """MCP resources."""

    def test_a_file_is_a_path_that_is_read(self) -> None:
        engine = self.world.engine(CASES["policies"]["home-open"]["rules"], protected=["~/.ssh"])
        home = self.world.home
        for uri, expected in (
            ("file:///workspace/a/f", "allow structural-sandbox-allow"),
            ("FILE:/workspace/a/%66", "allow structural-sandbox-allow"),
            (f"file://localhost{home}/d/f", "allow read-home"),
            (f"file://{home}/d/../.ssh/key", "deny structural-protected-path"),
            ("file:///workspace/%2e%2e/out/g", "deny default-deny"),
            ("file:///etc/shadow", "deny default-deny"),
            ("file://other.test/etc/shadow", "deny invalid-arguments"),
            (" file:///workspace/a/f", "deny invalid-arguments"),
            ("memo://x", "deny default-deny"),
            ("https://a.test/", "deny default-deny"),
        ):
            self.assertVerdict(engine.evaluate_resource("filesystem", uri), expected)

    def test_what_is_asked_for_is_what_was_judged(self) -> None:
        verdict = self.world.engine().evaluate_resource("filesystem", "file:///workspace/a/up/a/f%20g")
        self.assertEqual(verdict.arguments, {"uri": f"file://{self.world.workspace}/a/f%20g"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(HEADS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


class TotalTests(_WorldTests):
    """No question is left without a verdict."""

    def test_nothing_raises(self) -> None:
        engine = self.world.engine([rule("ask", "escalate")])
        calls = [(server, tool) for server, tools in CASES["tools"].items() for tool in tools]

        @settings(max_examples=300, deadline=None, database=None)
        @given(st.sampled_from(calls), st.data())
        def answered(call: tuple[str, str], data: st.DataObject) -> None:
            server, tool = call
            names = [*CASES["tools"][server][tool]["properties"], "other"]
            arguments = data.draw(st.dictionaries(st.sampled_from(names), JSON, max_size=3))
            good = {"type": "object", "properties": {name: {} for name in names}}
            schema: Any = data.draw(st.sampled_from([CASES["tools"][server][tool], good]) | JSON)
            directory = data.draw(st.none() | st.text())
            verdict = engine.evaluate(ToolCall(server, tool, arguments), schema, git_directory=directory)
            self.assertIsInstance(verdict, Verdict)

        answered()
