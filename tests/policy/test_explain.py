"""Explanations come from the engine itself, and the check of policies finds mistakes."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.http.urls import UnclearAddress
from ironcurtain.policy.check import check, require_right
from ironcurtain.policy.explain import explain
from ironcurtain.policy.lists import DomainPatterns, pattern_problem
from ironcurtain.policy.loading import compiled_policy, tool_annotations
from ironcurtain.policy.targets import git_target, web_target
from ironcurtain.policy.verdict import ToolCall, Trace
from tests.policy.test_cases import judged
from tests.policy.worlds import CASES, World, filled, rule


class ExplainTests(SynchronousTestCase):
    """:func:`explain`"""

    def explained(self, tool: str, **arguments: Any) -> tuple[str, list[tuple[str, str]]]:
        """:returns: the text, and the steps about rules."""
        policy = CASES["policies"]["desk"]
        engine = self.world.engine(policy["rules"], protected=policy["protected"])
        call = ToolCall("filesystem", tool, filled(arguments, self.world.names))
        explanation = explain(engine, call)
        json.dumps(explanation.data())
        return explanation.text(), [(step.check, step.outcome) for step in explanation.steps if step.rule]

    def setUp(self) -> None:
        self.world = World.make(CASES["trees"]["plain"])
        self.addCleanup(self.world.remove)

    def test_it_tells_each_rule_and_why_it_does_not_hold(self) -> None:
        paths = ["notes.txt", "~/Documents/a.txt", "$ROOT/shared/s.txt"]
        text, steps = self.explained("read_multiple_files", paths=paths)
        self.assertEqual(
            steps,
            [
                ("deny-payroll", "no"),
                ("read-documents", "allow"),
                ("use-downloads", "no"),
                ("read-shared", "escalate"),
            ],
        )
        self.assertIn("none of the remaining values meets its conditions", text)
        self.assertTrue(text.endswith("escalate by read-shared: shared files need a person"), text)
        self.assertIn(f"paths is judged as read-path: {self.world.workspace}/notes.txt", text)

    def test_it_tells_what_no_rule_can_change(self) -> None:
        text, steps = self.explained("write_file", path="~/vault/x", content="")
        self.assertEqual(steps, [])
        self.assertIn("protected paths [write-path]: deny", text)

    def test_a_trace_changes_no_verdict(self) -> None:
        for case in CASES["cases"]:
            world = World.make(CASES["trees"][case["tree"]])
            plain = judged(case, world)
            policy = CASES["policies"][case["policy"]]
            named = {key: value for key, value in policy.items() if key != "rules"}
            engine, trace, call = world.engine(policy["rules"], **named), Trace(), case["call"]
            traced = world.ask(engine, call["server"], call["tool"], call["arguments"], trace=trace)
            self.assertEqual(traced, plain)
            self.assertTrue(trace.steps)
            world.remove()


class CheckTests(SynchronousTestCase):
    """:func:`check`"""

    def codes(self, *rules: dict[str, Any], **more: Any) -> list[str]:
        """:returns: what is found in a policy over the tools of the cases."""
        policy = compiled_policy({"rules": list(rules), **more})
        return [finding.code for finding in check(policy, tool_annotations(CASES["annotations"]))]

    def test_nothing_to_find(self) -> None:
        for name in ("desk", "git", "git-no-remote", "web", "hub"):
            policy = CASES["policies"][name]
            rules = filled(policy["rules"], {"$ROOT": "/srv", "$HOME": "~", "$WORKSPACE": "/workspace"})
            self.assertEqual(self.codes(*rules, lists=policy.get("lists", {})), [], name)

    def test_mistakes(self) -> None:
        near = {"roles": ["read-path"], "within": "~/a/b"}
        far = {"roles": ["read-path"], "within": "~/a"}
        web = {"roles": ["fetch-url"], "allowed": ["@gone"]}
        site = {"roles": ["fetch-url"], "allowed": ["a.test"]}
        for rules, expected in (
            ([rule("a", "deny", server=["git"]), rule("a", "deny", server=["fetch"])], ["duplicate-name"]),
            ([rule("a", "deny", server=["gti"])], ["unknown-server", "never-matches"]),
            ([rule("a", "deny", server=["git"], tool=["push"])], ["unknown-tool", "never-matches"]),
            ([rule("a", "deny", server=["fetch"], paths={**near, "roles": ["delete-path"]})], ["never-matches"]),
            ([rule("a", "deny", tool=[])], ["empty-condition", "never-matches"]),
            ([rule("a", "escalate", server=["git"], tool=["resources/read"])], []),
            ([rule("a", "escalate", server=["tickets"], tool=["resources/read"])], ["unknown-server"]),
            ([rule("a", "allow", paths=far), rule("b", "deny", paths=near)], ["shadowed"]),
            ([rule("a", "allow", domains=site), rule("b", "deny", domains=site)], []),
            ([rule("a", "deny", domains=site), rule("b", "allow", domains=site)], ["shadowed"]),
            ([rule("a", "deny", paths=near), rule("b", "allow", paths=far)], []),
            ([rule("a", "deny", domains=web)], ["missing-list", "empty-list"]),
            ([rule("a", "deny", domains={**web, "allowed": ["https://a.test"]})], ["no-domain"]),
            ([rule("a", "deny", lists=[{**web, "allowed": ["a.test:1"], "matchType": "domains"}])], ["no-domain"]),
            ([rule("a", "deny", lists=[{**web, "allowed": ["a.test:1"], "matchType": "identifiers"}])], []),
            ([rule("a", "allow")], ["allows-everything"]),
            ([rule("a", "allow", server=["fetch"])], ["allows-server"]),
            ([rule("a", "allow", domains={**web, "allowed": ["*"]})], ["wildcard"]),
            ([rule("a", "allow", paths={**far, "within": "~"})], ["broad-path"]),
        ):
            self.assertEqual(self.codes(*rules), expected, rules)
        self.assertEqual(self.codes(lists={"x": {"values": ["a"]}}), ["unused-list"])

    def test_a_broad_path_is_found_in_every_spelling(self) -> None:
        for within, broad in (
            *(
                (text, True)
                for text in ("~", "~/", "~/.", "~/**", "$HOME", "/", "//", "/**", "/home", "/home/", "/home/./ada")
            ),
            *((text, True) for text in ("/etc", "/home/ada/**")),
            *(
                (text, False)
                for text in ("~/a", "/home/ada/a", "/home/eve", "/workspace", "/workspace/**", "/usr/share")
            ),
        ):
            paths = {"roles": ["read-path"], "within": within}
            policy = compiled_policy({"rules": [rule("a", "allow", paths=paths)]})
            found = [each.code for each in check(policy, tool_annotations(CASES["annotations"]), (), "/home/ada")]
            self.assertEqual(found, ["broad-path"] if broad else [], within)

    def test_a_rule_about_a_server_without_annotations_matches_if_it_restricts(self) -> None:
        for then, servers, expected in (
            ("deny", ["tickets"], ["unknown-server"]),
            ("escalate", ["tickets"], ["unknown-server"]),
            ("allow", ["tickets"], ["unknown-server", "never-matches"]),
            ("deny", [], ["unknown-server", "never-matches"]),
        ):
            policy = compiled_policy({"rules": [rule("a", then, server=["tickets"], tool=["purge"])]})
            found = [each.code for each in check(policy, tool_annotations(CASES["annotations"]), servers)]
            self.assertEqual(found, expected, (then, servers))

    def test_a_policy_with_an_error_is_refused_with_its_line(self) -> None:
        one = '[[rules]]\nname = "a"\nthen = "deny"\nif = {}\n'
        text = f"version = 1\n{one}{one}"
        rules = [rule("a", "deny"), rule("a", "deny")]
        policy, annotations = compiled_policy({"rules": rules}, "p.toml"), tool_annotations(CASES["annotations"])
        error = self.assertRaises(ConfigurationError, require_right, policy, annotations, (), text)
        self.assertTrue(str(error).startswith("p.toml:6: rules[1]: rule a: another rule has this name"), error)
        right = compiled_policy({"rules": rules[:1]})
        self.assertIs(require_right(right, annotations, (), ""), right)

    def test_patterns_that_match_nothing_say_why(self) -> None:
        for pattern, why in (
            ("https://a.test", "scheme"),
            ("https://a.test/x", "scheme"),
            ("a.test:99999", "from 1 to 65535"),
            ("a.*:22", "write * alone"),
            ("a.test:443/x/y", "without port"),
            ("me@a.test", "is not a host"),
            ("a test", "is not a host"),
            (" a.test", "is not a host"),
            ("a..test", "is not a host"),
            ("", "is not a host"),
            ("*.", "is not a host"),
            ("1.2.3.999", "is not a host"),
            ("a.*.test", "write * alone"),
            ("*a.test", "write * alone"),
            ("a.*", "write * alone"),
            ("*.*.test", "write * alone"),
            ("**", "write * alone"),
            ("*.1.2.3.4", "cannot precede an address"),
            ("*.::1", "an address"),
            ("*.a.test/x/y", "the host of a repository"),
            ("*/x/y", "the host of a repository"),
            ("a.test/", "host/owner/name"),
            ("a.test/x/y/", "host/owner/name"),
            ("a.test/x/y.git", "host/owner/name"),
        ):
            self.assertIn(why, pattern_problem(pattern), pattern)
            (finding,) = (
                finding
                for finding in check(
                    compiled_policy(
                        {"rules": [rule("a", "deny", domains={"roles": ["git-remote-url"], "allowed": [pattern]})]}
                    ),
                    tool_annotations(CASES["annotations"]),
                )
                if finding.code == "no-domain"
            )
            self.assertIn(pattern_problem(pattern), finding.message)
        for pattern in ("*", "a.test", "A.Test", "*.a.test", "a.test.", "1.2.3.4", "::1", "[::1]", "b\u00fccher.test"):
            self.assertEqual(pattern_problem(pattern), "", pattern)
        self.assertEqual(pattern_problem("a.test/x/y"), "")

    def test_a_repository_is_a_remote_alone(self) -> None:
        for roles, expected in ((["fetch-url"], ["no-domain"]), (["fetch-url", "git-remote-url"], [])):
            found = self.codes(rule("a", "deny", domains={"roles": roles, "allowed": ["a.test/x/y"]}))
            self.assertEqual(found, expected, roles)

    @given(st.text("ab.*:/[]1-@ ", max_size=9), st.text("ab.1", min_size=1, max_size=9))
    def test_what_is_said_to_match_nothing_matches_nothing(self, pattern: str, name: str) -> None:
        if pattern_problem(pattern):
            targets = [git_target(f"https://[::1]/{name}")]
            with contextlib.suppress(UnclearAddress):
                targets += [web_target(f"https://{name}/a"), git_target(f"https://{name}/a/b.git")]
            for target in targets:
                self.assertFalse(DomainPatterns([pattern]).match(target), (pattern, target))
