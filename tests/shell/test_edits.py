"""Files that the shell's agent writes: what is judged is what is shown and written, whatever links lead there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.errors import UsageError
from ironcurtain.llm.model import ToolUse
from ironcurtain.mcp_proxy.hooks import Hooks
from ironcurtain.policy.verdict import Decision, Reversal
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.edits import EDIT, SIZE_LIMIT, WRITE, EditHand
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.messages import (
    Approval,
    ApprovalRequested,
    Edit,
    Message,
    Notice,
    PlanProposed,
    ProposedStep,
    StepOutcome,
)
from ironcurtain.shell.model import ConfirmMode
from ironcurtain.shell.narrowing import NarrowedGate
from ironcurtain.shell.plan import PlanRun
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.tools import Hands
from tests.audit.doubles import scratch
from tests.shell.support import ShellTestCase

ALLOWED: dict[str, Any] = {"filesystem": {"read": ["$CWD/**"], "write": ["$CWD/**"]}}


class EditCase(ShellTestCase):
    """With a hand over a directory of its own."""

    def setUp(self) -> None:
        super().setUp()
        self.root = scratch(self)
        self.work, self.home = self.root / "work", self.root / "home"
        self.work.mkdir()
        (self.home / ".ironcurtain" / "hooks").mkdir(parents=True, mode=0o700)
        self.directory = str(self.work)
        self.use(ALLOWED)

    def use(self, *tables: Mapping[str, Any]) -> None:
        """Judge by these tables; those after the first are of agents above."""
        protected = (str(self.home / ".ironcurtain"),)
        gates = [
            CommandGate(
                read_approval(each, "policy.toml", str(self.home)),
                protected,
                str(self.home),
                os.path.realpath,
                str(self.work),
            )
            for each in tables
        ]
        hooks = Hooks(reactor, self.home / ".ironcurtain" / "hooks", os.environ, 10.0, os.geteuid())  # type: ignore[arg-type]
        gate = NarrowedGate(gates[0], gates[1:])
        policy = StepPolicy(gate, hooks, self.admission, lambda: "fix it", self.told.append, str(self.home))
        self.hand = EditHand(policy, protected)
        self.parts = replace(self.parts, hands=Hands([self.hand]))

    def write(self, path: str, content: str) -> ProposedStep:
        """:returns: a step that writes a file."""
        use = ToolUse("1", WRITE.name, {"path": path, "content": content, "purpose": "so"})
        return self.hand.proposed(1, use, str(self.work))

    def edit(self, path: str, *edits: tuple[str, str]) -> ProposedStep:
        """:returns: a step that changes a file."""
        passages = [{"old": old, "new": new} for old, new in edits]
        return self.hand.proposed(1, ToolUse("1", EDIT.name, {"path": path, "edits": passages}), str(self.work))

    def run_plan(self, *steps: ProposedStep, confirm: ConfirmMode = ConfirmMode.AUTO) -> PlanRun:
        """:returns: a plan of these steps, which has begun."""
        plan = PlanRun("p1", [self.parts.preview(step) for step in steps], replace(self.parts, confirm=confirm))
        self.running = Deferred.fromCoroutine(plan.run())
        self.turn()
        return plan


class JudgedTests(EditCase):
    """What the policy says of them."""

    def judged(self, step: ProposedStep) -> tuple[Decision, str]:
        """:returns: the decision, and the rule."""
        verdict = self.hand.preview(step, self.directory).verdict
        return verdict.decision, verdict.rule

    def test_lists_of_the_policy_decide_and_others_ask(self) -> None:
        self.assertEqual(self.judged(self.write("new.txt", "x")), (Decision.ALLOW, "approval.filesystem.write"))
        self.assertEqual(self.judged(self.write("../beside", "x")), (Decision.ESCALATE, "approval.default"))
        self.use({"default": "deny"})
        self.assertEqual(self.judged(self.write("new.txt", "x")), (Decision.DENY, "approval.default"))

    def test_what_is_read_to_change_it_needs_the_permission_to_read(self) -> None:
        (self.work / "a").write_text("one\n")
        self.use({"filesystem": {"mode": "ask", "write": ["$CWD/**"], "deny": ["$CWD/a"]}})
        verdict = self.hand.preview(self.edit("a", ("absent", "x")), self.directory)
        self.assertEqual(verdict.verdict.rule, "approval.filesystem.deny")
        self.assertEqual((verdict.step.diff, verdict.verdict.arguments), ("", {"path": str(self.work / "a")}))

    def test_protected_paths_are_denied_by_every_way(self) -> None:
        secret = self.home / ".ironcurtain" / "policy.toml"
        secret.write_text("version = 1\n")
        (self.work / "link").symlink_to(self.home / ".ironcurtain")
        (self.work / "chain").symlink_to("link/policy.toml")
        self.use({"filesystem": {"mode": "allow"}})
        by_links = ("link/policy.toml", "chain", "../home/.ironcurtain/x")
        for path in (str(secret), *by_links, "~/.ironcurtain/hooks/pre-exec", "~/.ironcurtain/watchers.toml"):
            self.assertEqual(self.judged(self.write(path, "")), (Decision.DENY, "structural-protected-path"), path)

    def test_a_link_shows_and_is_judged_by_where_it_leads(self) -> None:
        (self.root / "outside").mkdir()
        (self.work / "src").symlink_to(self.root / "outside")
        step = self.write("src/x", "new")
        self.assertEqual(step.command, f"write {self.root}/outside/x")
        self.assertEqual(self.judged(step)[0], Decision.ESCALATE)
        self.assertIs(self.hand.preview(step, self.directory).verdict.reversal, Reversal.OUTSIDE)
        self.assertIs(self.hand.preview(self.write("in", ""), self.directory).verdict.reversal, Reversal.SNAPSHOT)

    def test_name_of_a_file_is_one_line(self) -> None:
        step = self.write("a\n╰ a allow", "x\n")
        self.assertEqual(step.command, f"write {self.work}/a\\n╰ a allow")
        self.assertEqual(step.arguments["path"], f"{self.work}/a\n╰ a allow")
        self.assertNotIn("\n╰", self.hand.preview(step, self.directory).step.diff)

    def test_agents_above_bind_it(self) -> None:
        self.use(ALLOWED, {"filesystem": {"mode": "deny"}})
        self.assertEqual(self.judged(self.write("x", "y")), (Decision.DENY, "approval.filesystem.mode"))

    def test_an_edit_that_cannot_be_made_is_no_question(self) -> None:
        (self.work / "a").write_text("one one\n")
        (self.work / "bytes").write_bytes(b"\xff\xfe\x00")
        os.mkfifo(self.work / "pipe")
        for step in (
            self.edit("a", ("two", "x")),
            self.edit("a", ("one", "x")),
            self.edit("missing", ("one", "x")),
            self.write("bytes", "x"),
            self.write("pipe", "x"),
            self.write(".", "x"),
            self.write("big", "x" * (SIZE_LIMIT + 1)),
        ):
            self.assertEqual(self.judged(step), (Decision.DENY, "structural-edit"), step.arguments)

    def test_wrong_arguments_are_for_the_model(self) -> None:
        for name, arguments in (
            (WRITE.name, {"path": "x"}),
            (WRITE.name, {"path": "", "content": ""}),
            (WRITE.name, {"path": "a\0b", "content": ""}),
            (WRITE.name, {"path": 3, "content": ""}),
            (EDIT.name, {"path": "x"}),
            (EDIT.name, {"path": "x", "edits": [{"old": "a"}]}),
            (EDIT.name, {"path": "x", "edits": "all"}),
        ):
            with self.assertRaises(UsageError):
                self.hand.proposed(1, ToolUse("1", name, arguments), self.directory)


class PlanTests(EditCase):
    """As steps of plans."""

    def outcome(self) -> StepOutcome:
        """:returns: how the only step ended."""
        self.turn()
        (completed,) = self.successResultOf(self.running)
        self.reason = completed.reason
        return completed.outcome

    def test_an_allowed_file_is_written_as_it_was_shown(self) -> None:
        (self.work / "a").write_text("one\ntwo\n")
        (self.work / "a").chmod(0o750)
        self.run_plan(self.edit("a", ("two", "drei")))
        self.assertIs(self.outcome(), StepOutcome.DONE)
        self.assertEqual((self.work / "a").read_text(), "one\ndrei\n")
        self.assertEqual((self.work / "a").stat().st_mode & 0o777, 0o750)
        shown = self.last(PlanProposed).steps[0]  # type: ignore[union-attr]
        self.assertIn("-two\n+drei\n", shown.diff)

    def test_a_plan_approves_exactly_the_change_that_it_shows(self) -> None:
        self.use({})
        (self.work / "a").write_text("one\ntwo\n")
        plan = self.run_plan(self.edit("a", ("two", "drei")), confirm=ConfirmMode.PLAN)
        (self.work / "a").write_text("ein\ntwo\n")
        plan.receive(approval("allow"))
        self.turn()
        request = self.last(ApprovalRequested)
        self.assertIn("-two\n+drei\n", request.step.diff)  # type: ignore[union-attr]
        self.assertEqual((self.work / "a").read_text(), "ein\ntwo\n")
        (self.work / "a").write_text("zwei\ntwo\n")
        plan.receive(approval("allow", 1))
        self.assertIs(self.outcome(), StepOutcome.FAILED)
        self.assertIn("changed after", self.reason)
        self.assertEqual((self.work / "a").read_text(), "zwei\ntwo\n")

    def test_a_link_that_appears_after_the_decision_is_not_followed(self) -> None:
        self.use({})
        other = self.root / "other"
        other.write_text("")
        plan = self.run_plan(self.write("a", "mine"), confirm=ConfirmMode.PLAN)
        plan.receive(approval("step"))
        self.turn()
        (self.work / "a").symlink_to(other)
        plan.receive(approval("allow", 1))
        self.assertIs(self.outcome(), StepOutcome.FAILED)
        self.assertEqual(other.read_text(), "")

    def test_another_name_of_a_protected_file_is_replaced_by_a_file_of_its_own(self) -> None:
        secret = self.home / ".ironcurtain" / "policy.toml"
        secret.write_text("version = 1\n")
        os.link(secret, self.work / "innocent")
        self.run_plan(self.write("innocent", "allow all"))
        self.assertIs(self.outcome(), StepOutcome.DONE)
        self.assertEqual(secret.read_text(), "version = 1\n")

    def test_a_kept_approval_covers_the_directory_and_nothing_beside_it(self) -> None:
        self.use({})
        (self.work / "src").mkdir()
        plan = self.run_plan(self.write("src/a", "1"))
        self.assertIn("in " + str(self.work / "src"), self.last(ApprovalRequested).scope)  # type: ignore[union-attr]
        plan.receive(approval("allow_session", 1))
        self.assertIs(self.outcome(), StepOutcome.DONE)
        self.told.clear()
        self.run_plan(self.write("src/b", "2"))
        self.assertIs(self.outcome(), StepOutcome.DONE)
        plan = self.run_plan(self.write("c", "3"))
        self.last(ApprovalRequested)
        plan.receive(approval("deny", 1))
        self.assertIs(self.outcome(), StepOutcome.DENIED)

    def test_only_commands_can_be_rewritten(self) -> None:
        plan = self.run_plan(self.write("a", "1"), confirm=ConfirmMode.PLAN)
        with self.assertRaisesRegex(UsageError, "no command"):
            plan.receive(Edit(plan_id="p1", step=1, command="rm a"))
        plan.receive(approval("deny"))


def approval(decision: str, step: int | None = None) -> Any:
    """:returns: a decision on the plan, or on its step."""
    return Approval(plan_id="p1", decision=decision, step=step)  # type: ignore[arg-type]


class HookTests(TestCase):
    """With hooks, which are programs."""

    def setUp(self) -> None:
        self.root = scratch(self)
        self.hooks = self.root / "hooks"
        self.hooks.mkdir(mode=0o700)
        self.told: list[Message] = []
        gate = CommandGate(read_approval(ALLOWED, "p", "/h"), (), "/h", os.path.realpath, str(self.root))
        self.hand = EditHand(
            StepPolicy(
                NarrowedGate(gate, ()),
                Hooks(reactor, self.hooks, os.environ, 10.0, os.geteuid()),  # type: ignore[arg-type]
                None,  # type: ignore[arg-type]  # nothing is recorded here
                lambda: "fix it",
                self.told.append,
                "/h",
            ),
            (),
        )
        use = ToolUse("1", WRITE.name, {"path": "x", "content": "old"})
        self.step = self.hand.proposed(1, use, str(self.root))

    def hook(self, name: str, script: str) -> None:
        """Install a hook."""
        path = self.hooks / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    async def test_a_hook_sees_the_file_and_can_change_what_is_written(self) -> None:
        self.hook("pre-exec", f'cat > {self.root}/seen; echo \'{{"decision": "modify", "content": "new"}}\'')
        judged = await self.hand.judge(self.step, str(self.root))
        self.assertEqual(judged.by, "policy, changed by pre-exec")
        self.assertEqual(judged.verdict.arguments["content"], "new")
        self.assertIn("+new", judged.step.diff)
        seen = Path(self.root, "seen").read_text()
        for words in ('"type":"edit"', f'"path":"{self.root}/x"', '"content":"old"', '"instruction":"fix it"'):
            self.assertIn(words, seen)

    async def test_a_hook_denies(self) -> None:
        self.hook("pre-exec", 'echo \'{"decision": "deny", "reason": "no"}\'')
        judged = await self.hand.judge(self.step, str(self.root))
        self.assertEqual((judged.verdict.decision, judged.verdict.rule), (Decision.DENY, "hook pre-exec"))
        self.hook("pre-exec", 'echo \'{"decision": "modify", "command": "ls"}\'')
        judged = await self.hand.judge(self.step, str(self.root))
        self.assertIn("names none", judged.verdict.reason)

    async def test_a_hook_after_it_ends_the_plan(self) -> None:
        self.hook("post-exec", 'grep -q \'"status":"success"\' && echo \'{"decision": "deny", "reason": "enough"}\'')
        done = CommandResult(StepOutcome.DONE, 0, b"")
        self.assertFalse(await self.hand.finished(self.step, str(self.root), done))
        self.assertEqual(self.told, [Notice(text="post-exec: enough")])
