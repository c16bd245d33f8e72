"""Approvals of a category of steps, until the session ends."""

from __future__ import annotations

from typing import Any

from ironcurtain.command_rules import Risk
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.categories import category_of
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.messages import ApprovalRequested, ProposedStep, StepOutcome
from ironcurtain.shell.model import ConfirmMode
from ironcurtain.shell.tools import JudgedStep
from tests.shell.test_edits import EditCase, approval
from tests.shell.test_gate import HERE, HOME, PROTECTED, realpath


class CategoryTests(EditCase):
    """Which steps are in one, and what an approval of it covers."""

    def category(self, command: str, directory: str = HERE, tables: dict[str, Any] | None = None) -> Risk | None:
        """:returns: that of a command."""
        gate = CommandGate(read_approval(tables or {}, "p", HOME), PROTECTED, HOME, realpath, HERE)
        step = ProposedStep(number=1, command=command)
        return category_of(JudgedStep(step, gate.judged(command, directory), gate.risk(command, directory)))

    def test_plain_steps_are_in_one(self) -> None:
        for command, category in (
            ("ls", Risk.READ),
            ("cat /etc/hosts | sort", Risk.READ),
            ("touch src/x", Risk.WRITE_INSIDE),
            ("cp src/a src/b", Risk.WRITE_INSIDE),
            ("ping -c1 example.org", Risk.NETWORK),
        ):
            self.assertIs(self.category(command), category, command)

    def test_doubtful_and_severe_steps_are_in_none(self) -> None:
        for command in (
            "rm src/x",
            "sudo ls",
            "touch /etc/x",
            "touch out/x",
            "touch $HOME/x",
            "curl -d @src/x https://example.org",
            "curl -o src/x https://example.org",
            "ls $(reboot)",
            "frobnicate x",
            "cp src/a .git/config",
            "echo x > .envrc",
            "mv src/a .git/hooks/post-commit",
            "mkdir src/.vscode",
            "tar xf src/a.tar",
            "cd src && tar -xf ../a.tar",
            "unzip src/a.zip",
            "cp -r src/a/. src",
            "rsync -a src/a/ src/b",
            "git status",
            "cd src && env /usr/bin/git -C x log",
            "cat *",
            "cat .secret",
            "ssh example.org ls",
            "ls; x=1",
        ):
            self.assertIsNone(self.category(command), command)
        self.assertIsNone(self.category("touch x", "/"), "a shell that has gone elsewhere")
        denied = {"filesystem": {"deny": ["$CWD/.env"]}}
        self.assertIsNone(self.category("cat -r *", tables=denied))
        self.assertIsNone(self.category("ls", tables={"default": "allow"}), "nothing is asked")

    def test_it_covers_what_is_in_it_and_ends_when_it_is_revoked(self) -> None:
        self.use({})
        plan = self.run_plan(self.write("a", "1"))
        self.assertIn("writes files below", self.last(ApprovalRequested).category)  # type: ignore[union-attr]
        plan.receive(approval("allow_category", 1))
        self.assertEqual(self.ended(), [StepOutcome.DONE])
        (self.work / "sub").mkdir()
        self.told.clear()
        self.run_plan(self.write("sub/b", "2"))
        self.assertEqual(self.ended(), [StepOutcome.DONE])
        self.assertEqual([each for each in self.told if isinstance(each, ApprovalRequested)], [])
        for path in (".git/config", "sub/.envrc", "../beside"):
            plan = self.run_plan(self.write(path, "3"))
            self.assertEqual(self.last(ApprovalRequested).category, "", path)  # type: ignore[union-attr]
            plan.receive(approval("deny", 1))
            self.assertEqual(self.ended(), [StepOutcome.DENIED])
        plan = self.run_plan(self.write("../beside", "3"))
        self.assertEqual(self.last(ApprovalRequested).category, "")  # type: ignore[union-attr]
        plan.receive(approval("deny", 1))
        self.assertEqual(self.ended(), [StepOutcome.DENIED])
        (permission,) = self.escalations.permissions()
        self.assertIn("every step that writes files", permission.scope.words)
        self.escalations.revoke(permission.number, "local:ada")
        plan = self.run_plan(self.write("sub/c", "4"))
        self.last(ApprovalRequested)
        plan.receive(approval("deny", 1))
        self.assertEqual(self.ended(), [StepOutcome.DENIED])

    def test_a_step_by_step_plan_asks_all_the_same(self) -> None:
        self.use({})
        self.run_plan(self.write("a", "1"), confirm=ConfirmMode.EACH)
        self.assertIn("writes files below", self.last(ApprovalRequested).category)  # type: ignore[union-attr]

    def ended(self) -> list[StepOutcome]:
        """:returns: how the steps of the last plan ended."""
        self.turn()
        return [step.outcome for step in self.successResultOf(self.running)]
