"""Commands judged by the gate and by real hooks."""

from __future__ import annotations

import json
import os
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.mcp_proxy.hooks import Hooks
from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.commands import CommandHand
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.messages import Message, Notice, ProposedStep, StepOutcome
from ironcurtain.shell.narrowing import NarrowedGate
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.tools import JudgedStep
from tests.process.commands import PlayedTime, RealCommandCase

TABLES: dict[str, Any] = {"shell": {"mode": "ask", "deny_patterns": ["sudo *"], "allow_patterns": ["ls", "df"]}}
ALLOW = """echo '{"decision": "allow"}'"""


class JudgeTests(RealCommandCase):
    """:class:`CommandHand`"""

    def setUp(self) -> None:
        super().setUp()
        self.directory /= "hooks"
        self.directory.mkdir(mode=0o700)
        around: Any = PlayedTime(self.clock)
        hooks = Hooks(around, self.directory, {"PATH": os.environ["PATH"]}, 10.0, os.geteuid())
        gate = CommandGate(
            read_approval(TABLES, "policy.toml", "/home/ann"), ("/home/ann/.ssh",), "/home/ann", str, "/home/ann/work"
        )
        self.told: list[Message] = []
        unused: Any = None  # nothing is recorded here, or run
        narrowed = NarrowedGate(gate, ())
        policy = StepPolicy(narrowed, hooks, unused, lambda: "look around", self.told.append, "/home/ann")
        self.hand = CommandHand(policy, unused)

    def hook(self, name: str, script: str) -> None:
        """Install a hook."""
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)

    async def judged(self, command: str) -> JudgedStep:
        """:returns: what is said of a command whose turn has come."""
        step = ProposedStep(number=3, command=command)
        return await Deferred.fromCoroutine(self.hand.judge(step, "/home/ann"))

    async def check(self, command: str, decision: Decision, rule: str, by: str = "policy") -> JudgedStep:
        """Judge a command."""
        judged = await self.judged(command)
        self.assertEqual((judged.verdict.decision, judged.verdict.rule, judged.by), (decision, rule, by))
        return judged

    async def test_without_hooks_the_tables_decide(self) -> None:
        await self.check("ls", Decision.ALLOW, "approval.shell.allow_patterns")
        await self.check("rm x", Decision.ESCALATE, "approval.shell.mode")
        await self.check("sudo ls", Decision.DENY, "approval.shell.deny_patterns")

    async def test_a_hook_is_told_what_will_run_and_for_what(self) -> None:
        self.hook("pre-exec", f"cat >'{self.mark}'; {ALLOW}")
        await self.check("ls", Decision.ALLOW, "approval.shell.allow_patterns")
        told = json.loads(self.mark.read_text())
        self.assertEqual(
            (told["command"], told["directory"], told["risk"], told["instruction"], told["step"]),
            ("ls", "/home/ann", "read", "look around", 3),
        )

    async def test_a_hook_denies_what_the_policy_allows(self) -> None:
        self.hook("pre-exec-no", """echo '{"decision": "deny", "reason": "not today"}'""")
        judged = await self.check("ls", Decision.DENY, "hook pre-exec-no", "pre-exec-no")
        self.assertEqual(judged.verdict.reason, "not today")
        self.assertEqual(judged.verdict.arguments, {"command": "ls", "directory": "/home/ann"})

    async def test_a_hook_allows_nothing_that_the_policy_asks_about(self) -> None:
        self.hook("pre-exec", ALLOW)
        await self.check("rm x", Decision.ESCALATE, "approval.shell.mode")

    async def test_what_nothing_can_allow_is_denied_before_any_hook(self) -> None:
        self.hook("pre-exec", f"touch '{self.mark}'; {ALLOW}")
        await self.check("sudo ls", Decision.DENY, "approval.shell.deny_patterns")
        await self.check("cat ~/.ssh/id", Decision.DENY, "structural-protected-path")
        self.assertFalse(self.mark.exists())

    async def test_what_a_hook_changes_is_judged_from_the_beginning(self) -> None:
        for command, decision, rule in (
            ("df", Decision.ALLOW, "approval.shell.allow_patterns"),
            ("rm x", Decision.ESCALATE, "approval.shell.mode"),
            ("sudo df", Decision.DENY, "approval.shell.deny_patterns"),
            ("cat ~/.ssh/id", Decision.DENY, "structural-protected-path"),
            ("# df", Decision.DENY, "structural-command"),
        ):
            self.hook("pre-exec", f"""echo '{{"decision": "modify", "command": "{command}"}}'""")
            judged = await self.check("ls", decision, rule, "policy, changed by pre-exec")
            self.assertEqual((judged.step.command, judged.verdict.arguments["command"]), (command, command))

    async def test_its_risk_is_that_of_what_will_run(self) -> None:
        self.hook("pre-exec", """echo '{"decision": "modify", "command": "rm -rf /home/ann"}'""")
        judged = await self.judged("ls")
        self.assertNotEqual(judged.risk, (await self.preview("ls")).risk)
        self.assertEqual(judged.risk, (await self.preview("rm -rf /home/ann")).risk)

    async def preview(self, command: str) -> JudgedStep:
        """:returns: what is said of it before hooks are asked."""
        return self.hand.preview(ProposedStep(number=1, command=command), "/home/ann")

    async def test_a_preview_asks_no_hook(self) -> None:
        self.hook("pre-exec", f"touch '{self.mark}'")
        self.assertIs((await self.preview("ls")).verdict.decision, Decision.ALLOW)
        self.assertFalse(self.mark.exists())

    async def finished(self, command: str = "ls") -> bool:
        """:returns: whether the plan goes on after a command that failed."""
        step, result = ProposedStep(number=3, command=command), CommandResult(StepOutcome.FAILED, 2, b"")
        return await Deferred.fromCoroutine(self.hand.finished(step, "/home/ann", result))

    async def test_names_are_asked_about_after_a_line_that_may_change_them(self) -> None:
        await self.finished("rm x")
        await self.check("ls", Decision.ALLOW, "approval.shell.allow_patterns")
        await self.finished("alias ls=rm")
        await self.check("ls", Decision.ESCALATE, "changed-shell")

    async def test_hooks_are_told_of_the_end(self) -> None:
        self.hook("post-exec", f"cat >'{self.mark}'; {ALLOW}")
        self.assertTrue(await self.finished())
        self.assertEqual((json.loads(self.mark.read_text())["exit_code"], self.told), (2, []))

    async def test_a_hook_ends_the_plan_and_the_user_is_told(self) -> None:
        self.hook("post-exec", """echo '{"decision": "deny", "reason": "that is enough"}'""")
        self.assertFalse(await self.finished())
        self.assertEqual(self.told, [Notice(text="post-exec: that is enough")])
        self.directory.chmod(0o755)
        self.assertFalse(await self.finished())
        self.assertIn("chmod 700", str(self.told[-1]))
