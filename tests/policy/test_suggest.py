"""Suggestions: narrow, confirmed by the engine, and none where a person once said no."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.structured import convert
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.files import AssumedFiles
from ironcurtain.policy.loading import compiled_policy, default_annotations, tool_annotations
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.recorded import SessionRecords
from ironcurtain.policy.rules import Policy, Rule
from ironcurtain.policy.suggest import Answered, Declined, Suggestion, answered_calls, suggest
from ironcurtain.policy.written import rule_toml
from tests.policy.test_replay import call_record
from tests.policy.worlds import rule

ASK = compiled_policy(
    {
        "rules": [
            rule("never", "deny", domains={"roles": ["fetch-url"], "allowed": ["evil.test"]}),
            rule("ask", "escalate"),
        ]
    }
)


def engines(policy: Policy) -> Callable[[str], PolicyEngine]:
    """:returns: what makes engines over no files."""
    return lambda workspace: PolicyEngine(
        policy, default_annotations(), paths=PathMap(workspace), home="/home/someone", files=AssumedFiles()
    )


class SuggestCase(SynchronousTestCase):
    """Answers calls one after another."""

    def setUp(self) -> None:
        self.answered: list[Answered] = []

    def call(self, tool: str, arguments: Any, outcome: str = "approved", **more: Any) -> None:
        """One call of its own session, with a decision."""
        server, _, name = tool.partition(".")
        number = len(self.answered) + 1
        workspace = {"kind": "session", "workspace": f"/w{number}"}
        record = call_record(server, name, arguments, "deny" if outcome == "policy" else "escalate", "ask")
        records = [workspace, {**record, "time": f"2026-01-0{number}T00:00:00.000Z"}]
        if outcome != "policy":
            records.append({"kind": "decision", "callId": "c", "outcome": outcome, "by": "ada", "number": 7, **more})
        calls = SessionRecords(default_annotations()).calls
        self.answered += answered_calls(str(number), records, calls)

    def suggested(self, policy: Policy = ASK, least: int = 2, since: str = "") -> Suggestion:
        """:returns: the only suggestion."""
        [found] = suggest(policy, self.answered, engines, least, since)
        assert isinstance(found, Suggestion), found
        return found

    def why(self, policy: Policy = ASK) -> str:
        """:returns: why there is none for the only tool."""
        [found] = suggest(policy, self.answered, engines, 2)
        assert isinstance(found, Declined), found
        return found.why


class NarrowTests(SuggestCase):
    """What a suggestion allows."""

    def test_exact_hosts_of_one_tool(self) -> None:
        for url in ("https://a.test/x", "https://b.test/y?z", "https://a.test/"):
            self.call("fetch.fetch", {"url": url})
        found = self.suggested()
        [only] = found.rules
        conditions = only.conditions
        self.assertEqual(
            (conditions.server, conditions.tool, conditions.roles), (("fetch",), ("fetch",), ("fetch-url",))
        )
        assert conditions.domains is not None
        self.assertEqual(conditions.domains.allowed, ("a.test", "b.test"))
        first, *_ = found.evidence
        self.assertEqual((first.session, first.number, first.by), ("1", 7, "ada"))

    def test_methods_of_requests(self) -> None:
        for method in ("GET", "HEAD", "GET"):
            self.call("network.request", {"method": method, "url": "https://a.test/x", "party": "the agent"})
        [only] = self.suggested().rules
        limits = {condition.roles: condition.allowed for condition in only.conditions.lists}
        self.assertEqual(limits, {("network-party",): ("the agent",), ("http-method",): ("GET", "HEAD")})

    def test_exact_paths_outside_the_workspace(self) -> None:
        for path in ("/else/a", "/else/b", "/else/a"):
            self.call("filesystem.read_text_file", {"path": path})
        within = [each.conditions.paths and each.conditions.paths.within for each in self.suggested().rules]
        self.assertEqual(within, ["/else/a", "/else/b"])

    def test_the_common_directory_in_the_workspaces(self) -> None:
        tools = {"servers": {"docs": {"tools": [{"toolName": "read", "args": {"path": ["read-path"]}}]}}}
        policy = Policy(ASK.rules, annotations=tool_annotations(tools))
        for number, path in enumerate(("src/x/a", "src/y/b"), 1):
            self.call("docs.read", {"path": f"/w{number}/{path}"})
        [only] = self.suggested(policy).rules
        assert only.conditions.paths is not None
        self.assertEqual(only.conditions.paths.within, "/workspace/src")

    def test_the_repository_of_a_remote(self) -> None:
        for _ in range(2):
            url = "https://github.com/ada/tools.git"
            self.call("git-remote.git_clone", {"url": url, "directory": f"/w{len(self.answered) + 1}/x"})
        [only] = self.suggested().rules
        assert only.conditions.domains is not None
        self.assertEqual(only.conditions.domains.allowed, ("github.com/ada/tools",))

    def test_the_text_is_the_rule(self) -> None:
        for _ in range(2):
            self.call("fetch.fetch", {"url": "https://a.test/"})
        [only] = self.suggested().rules
        [written] = tomllib.loads(rule_toml(only, ["a comment"]))["rules"]
        self.assertEqual(convert("x", written, Rule), only)

    @given(st.text(min_size=1, max_size=9), st.lists(st.text(max_size=5), max_size=3))
    def test_any_rule_can_be_written(self, name: str, tools: list[str]) -> None:
        made: Rule = convert("x", {"name": name, "if": {"tool": tools, "after": {"tool": tools}}, "then": "deny"}, Rule)
        [written] = tomllib.loads(rule_toml(made))["rules"]
        self.assertEqual(convert("x", written, Rule), made)


class DeclinedTests(SuggestCase):
    """Where there is no suggestion."""

    def fetch(self, *urls: str, outcome: str = "approved", **more: Any) -> None:
        """Calls with a decision."""
        for url in urls:
            self.call("fetch.fetch", {"url": url}, outcome, **more)

    def test_too_few(self) -> None:
        self.fetch("https://a.test/")
        self.assertEqual(suggest(ASK, self.answered, engines, 2), [])

    def test_approvals_before_the_time_do_not_count(self) -> None:
        self.fetch(*["https://a.test/"] * 3)
        self.assertEqual(suggest(ASK, self.answered, engines, 2, "2026-01-03"), [])
        self.assertEqual(len(self.suggested(since="2026-01-02").evidence), 2)

    def test_what_a_kept_approval_answered_does_not_count(self) -> None:
        self.fetch("https://a.test/", "https://a.test/", permission=3)
        self.assertEqual(suggest(ASK, self.answered, engines, 2), [])

    def test_a_tool_that_was_denied_once(self) -> None:
        self.fetch("https://a.test/", "https://a.test/")
        self.fetch("https://other.test/", outcome="denied")
        self.assertIn("ada denied a call in session 3 (escalation 7)", self.why())

    def test_what_the_policy_denies_stays_denied(self) -> None:
        self.fetch("https://a.test/", "https://a.test/")
        self.fetch("https://evil.test/", outcome="policy")
        self.assertEqual(self.suggested().denied, 1)

    def test_a_rule_that_would_allow_what_was_denied(self) -> None:
        self.fetch("https://a.test/", "https://a.test/")
        self.fetch("https://a.test/x", outcome="policy")
        self.assertIn("would allow a call that the policy denied", self.why())

    def test_many_different_hosts(self) -> None:
        self.fetch(*(f"https://a{number}.test/" for number in range(6)))
        self.assertIn("6 different", self.why())

    def test_a_tool_without_resources(self) -> None:
        for _ in range(2):
            self.call("time.get_current_time", {"timezone": "UTC"})
        self.assertIn("could not be limited", self.why())

    def test_records_that_are_not_complete(self) -> None:
        self.fetch("https://a.test/", "[redacted]")
        self.assertIn("only 1 of the calls", self.why())

    def test_what_is_allowed_by_now(self) -> None:
        self.fetch("https://a.test/", "https://a.test/")
        allow = compiled_policy(
            {"rules": [rule("a", "allow", domains={"roles": ["fetch-url"], "allowed": ["a.test"]})]}
        )
        self.assertIn("only 0 of the calls", self.why(allow))
