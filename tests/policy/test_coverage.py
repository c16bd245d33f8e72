"""How many tools of a server are judged by rules."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.coverage import coverage
from ironcurtain.policy.loading import compiled_policy, tool_annotations
from tests.policy.worlds import rule

KNOWN = tool_annotations({"servers": {"notes": {"tools": [{"toolName": "read", "args": {}}]}}})


class CoverageTests(SynchronousTestCase):
    """The sentence for people."""

    def said(self, *rules: object, tools: tuple[str, ...] = ("read", "push"), server: str = "notes") -> str:
        return str(coverage(server, tools, KNOWN, compiled_policy({"rules": list(rules)})))

    def test_tools_without_annotation_ask(self) -> None:
        named = rule("x", "allow", server=["notes"])
        self.assertEqual(self.said(named), "1 of 2 tools judged by rules, the others ask")
        self.assertEqual(self.said(named, tools=("read",)), "1 of 1 tools judged by rules")
        self.assertEqual(self.said(server="git"), "0 of 2 tools judged by rules, the others ask")

    def test_server_that_the_policy_does_not_name_asks(self) -> None:
        other = rule("x", "allow", server=["other"])
        self.assertIn("each call of its 2 tools asks", self.said(other))
        self.assertIn("each call of its 1 tool asks", self.said(other, tools=("read",)))
