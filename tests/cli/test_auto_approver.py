"""The auto-approver and two approvals, from the commands as a person uses them."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.cli.cases import ProductCase
from tests.product import until

READ = {"code": "print(filesystem.read_text_file('~/notes.txt'))"}
DONE = {"expect": {"last_result_contains": "buy milk"}, "text": "All done."}
POLICY = """
[[rules]]
name = "read-home"
if = { server = ["filesystem"], paths = { roles = ["read-path"], within = "~" } }
then = "escalate"
reason = "it is yours"
"""

USED = {"usage": {"input_tokens": 1, "output_tokens": 1}}
"""Of each model request of the agent."""


class ApprovalCase(ProductCase):
    """An agent that reads a file of the user's."""

    def begin(self, words: str, rule: str, *, typed: bool = False) -> Any:
        """
        :param typed: whether the words are typed at a terminal; else they are piped in.
        :returns: a session that works on the words, with more in its rule.
        """
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "policy.toml").write_text(f"{POLICY}{rule}\n")
        (self.product.person / "notes.txt").write_text("buy milk\n")
        line = ("start", "--backend", self.product.script({**READ, **USED}, {**DONE, **USED}))
        if typed:
            person, terminal = os.openpty()
            self.addCleanup(os.close, person)
            process = self.product.start(*line, stdin=terminal)
            os.close(terminal)
            os.write(person, f"{words}\n".encode())
            return process
        process = self.product.start(*line)
        assert process.stdin is not None
        process.stdin.write(f"{words}\n")
        process.stdin.flush()
        return process

    def records(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.product.audit() if record["kind"] == kind]


class AutoApproverTests(ApprovalCase):
    def setUp(self) -> None:
        super().setUp()
        script = self.product.person / "approver.toml"
        answer = json.dumps({"decision": "approve", "quote": "read ~/notes.txt"})
        usage = "usage = { input_tokens = 100, output_tokens = 20 }"
        script.write_text(f"version = 1\n[[turns]]\ntext = {json.dumps(answer)}\n{usage}\n")
        self.product.environ |= {
            "IRONCURTAIN_AUTO_APPROVER_ENABLED": "true",
            "IRONCURTAIN_AUTO_APPROVER_BACKEND": f"scripted:{script}",
        }

    def test_what_the_user_asks_for_needs_no_other_answer(self) -> None:
        process = self.begin("Please read ~/notes.txt now.", "auto = true", typed=True)
        until(process.stdout, "All done.")
        (decision,) = self.records("decision")
        self.assertEqual((decision["outcome"], decision["by"]), ("approved", "auto-approver"))
        (evidence,) = self.records("auto-approver")
        self.assertEqual((evidence["outcome"], evidence["quote"]), ("approved", "read ~/notes.txt"))
        (listed,) = self.product.json("escalations", "--all")
        self.assertEqual((listed["outcome"], listed["by"]), ("approved", "auto-approver"))

    def test_its_tokens_count_in_the_session(self) -> None:
        self.product.environ["IRONCURTAIN_BUDGET_TOKENS"] = "110"
        process = self.begin("Please read ~/notes.txt now.", "auto = true", typed=True)
        until(process.stderr, "budget used up: 122 of 110 tokens")

    def test_what_was_piped_in_waits(self) -> None:
        process = self.begin("Please read ~/notes.txt now.", "auto = true")
        until(process.stderr, "Type /approve 1")
        self.assertEqual(self.product.run("deny", "1").returncode, 0)
        (evidence,) = self.records("auto-approver")
        self.assertEqual((evidence["outcome"], evidence["model"]), ("asked", ""))

    def test_without_auto_in_the_rule_it_waits(self) -> None:
        process = self.begin("Please read ~/notes.txt now.", "")
        until(process.stderr, "Type /approve 1")
        self.assertEqual(self.records("auto-approver"), [])


class TwoApprovalsTests(ApprovalCase):
    def test_the_first_is_told_that_it_waits_and_the_second_sees_who_was_first(self) -> None:
        process = self.begin("Please read ~/notes.txt now.", "approvals = 2")
        until(process.stderr, "Type /approve 1")
        self.assertIn("needs the approvals of 2 people", self.product.run("escalations").stdout)
        first = self.product.run("approve", "1")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("approved by local:", first.stdout)
        self.assertIn("needs another person's approval, too", first.stdout)
        again = self.product.run("approve", "1")
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("another person must approve it", again.stderr)
        (waiting,) = self.product.json("escalations")
        self.assertEqual((waiting["approvals"], len(waiting["approved_by"])), (2, 1))
        (directory,) = self.product.home.glob("sessions/*/escalations")
        (request,) = directory.glob("request-*.json")
        answer = request.with_name(request.name.replace("request", "response"))
        temporary = directory / "answer.tmp"
        temporary.write_text('{"decision": "approved", "by": "bob"}')
        temporary.rename(answer)
        until(process.stdout, "All done.")
        self.assertEqual([record["by"] for record in self.records("approval")][1:], ["file:bob"])
