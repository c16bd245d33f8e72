"""Real hooks under the real reactor; the time limit alone is played by a clock."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.hooks import (
    OUTPUT_LIMIT,
    HookAction,
    Hooks,
    HookVerdict,
    check_hooks,
    find_hooks,
    read_answer,
)
from tests.process.commands import PlayedTime, RealCommandCase

ACTION = HookAction(command="df -h", directory="/home/ada", risk="read", instruction="which disk is full?", step=1)
ALLOW = HookVerdict("allow")


class HookTests(RealCommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory /= "hooks"
        self.directory.mkdir(mode=0o700)
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.mark.parent), "ANTHROPIC_API_KEY": "sk-secret"}
        around: Any = PlayedTime(self.clock)
        self.hooks = Hooks(around, self.directory, environ, 10.0, os.geteuid())

    def hook(self, name: str, script: str, mode: int = 0o700) -> Path:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(mode)
        return path

    def before(self, action: HookAction = ACTION) -> Deferred[HookVerdict]:
        return Deferred.fromCoroutine(self.hooks.before(action))

    async def denied(self, reason: str) -> None:
        verdict = await self.before()
        self.assertEqual((verdict.decision, verdict.reason, verdict.command), ("deny", reason, ""))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_without_hooks_nothing_is_denied(self) -> None:
        self.assertEqual(await self.before(), ALLOW)
        self.directory.rmdir()
        self.assertEqual(await self.before(), ALLOW)

    async def test_it_gets_the_action_and_a_small_environment(self) -> None:
        self.hook(
            "pre-exec",
            f"cat >'{self.mark}'; env >>'{self.mark}'; pwd >>'{self.mark}'; echo '{{\"decision\":\"allow\"}}'",
        )
        self.assertEqual((await self.before()).decision, "allow")
        line, *rest = self.mark.read_text().splitlines()
        self.assertEqual(
            json.loads(line),
            {
                "type": "shell",
                "command": "df -h",
                "directory": "/home/ada",
                "risk": "read",
                "instruction": "which disk is full?",
                "step": 1,
            },
        )
        names = {variable.partition("=")[0] for variable in rest[:-1]} - {"PWD", "OLDPWD", "SHLVL", "_"}
        self.assertEqual((names, rest[-1]), ({"PATH", "HOME"}, str(self.directory)))

    async def test_the_first_denial_counts(self) -> None:
        self.hook("pre-exec-1", """echo '{"decision": "allow", "reason": "fine"}'""")
        self.hook("pre-exec-2", """echo '{"decision": "deny", "reason": "not on Fridays"}'""")
        self.hook("pre-exec-3", f"touch '{self.mark}'")
        self.assertEqual(await self.before(), HookVerdict("deny", "not on Fridays", "", "pre-exec-2"))
        self.assertFalse(self.mark.exists())

    async def test_a_changed_command_goes_to_the_next_hook(self) -> None:
        self.hook("pre-exec-1", """echo '{"decision": "modify", "command": "df -hl", "reason": "local"}'""")
        self.hook("pre-exec-2", f"cat >'{self.mark}'; echo '{{\"decision\": \"allow\"}}'")
        self.assertEqual(await self.before(), HookVerdict("modify", "local", "df -hl", "pre-exec-1"))
        self.assertEqual(json.loads(self.mark.read_text())["command"], "df -hl")

    async def test_whatever_goes_wrong_is_a_denial(self) -> None:
        for script, why in (
            ("exit 3", "failed: it ended with status 3"),
            ('echo \'{"decision": "allow"}\'; echo oh no >&2; exit 1', "failed: it ended with status 1: oh no"),
            ('echo \'{"decision": "allow"}\'; kill -9 $$', "failed: it was ended by a signal"),
            (":", 'gave no answer such as {"decision": "allow"}'),
            ("echo allow", 'gave no answer such as {"decision": "allow"}'),
            ('echo \'{"decision": "modify"}\'', "wants another command, but names none"),
            (f"head -c {OUTPUT_LIMIT + 1} /dev/zero", "failed: it printed more than 64 KiB"),
        ):
            self.hook("pre-exec", script)
            await self.denied(f"the hook pre-exec {why}")
        self.hook("pre-exec", "").write_text("#!/no/such/interpreter\n")
        verdict = await self.before()
        self.assertEqual(verdict.decision, "deny")

    async def test_a_hook_that_hangs(self) -> None:
        self.hook("pre-exec", f"trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >\"{self.mark}\"; sleep 60; :'; :")
        asked = self.before()
        pid = await self.marked()
        self.clock.advance(9.9)
        os.kill(pid, 0)
        self.clock.advance(0.2)
        verdict = await asked
        self.assertEqual(
            (verdict.decision, verdict.reason), ("deny", "the hook pre-exec failed: it took more than 10 s")
        )
        await self.gone(pid)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_what_it_leaves_running_is_ended(self) -> None:
        self.hook("pre-exec", f"sleep 60 >/dev/null 2>&1 & echo $! >'{self.mark}'; echo '{{\"decision\": \"allow\"}}'")
        self.assertEqual((await self.before()).decision, "allow")
        await self.gone(await self.marked())

    async def test_cancelling_ends_it(self) -> None:
        self.hook("pre-exec", f"echo $$ >'{self.mark}'; sleep 60")
        asked = self.before()
        pid = await self.marked()
        asked.cancel()
        await self.assertFailure(asked, CancelledError)
        await self.gone(pid)

    async def test_hooks_that_others_could_change_are_refused_by_name(self) -> None:
        allow = 'echo \'{"decision": "allow"}\''
        for mode, why in (
            (0o720, "can be changed by others: chmod 700"),
            (0o702, "can be changed by others: chmod 700"),
            (0o600, "cannot be run: chmod 700, or remove it"),
        ):
            self.hook("pre-exec.sh", allow, mode)
            await self.denied(f"the hook pre-exec.sh {why}")
        elsewhere = self.hook("elsewhere", allow)
        (self.directory / "pre-exec.sh").unlink()
        (self.directory / "pre-exec.sh").symlink_to(elsewhere)
        await self.denied("the hook pre-exec.sh is no regular file: put the program itself there")
        self.assertEqual(len(check_hooks(self.directory, os.geteuid())), 1)

    async def test_so_is_a_directory_that_is_not_the_users_alone(self) -> None:
        self.hook("pre-exec", 'echo \'{"decision": "allow"}\'')
        refused = f"{self.directory} must be a directory of your own, which nobody else may enter: chmod 700"
        for mode in (0o710, 0o701, 0o755):
            self.directory.chmod(mode)
            await self.denied(refused)
        self.directory.chmod(0o700)
        self.assertEqual(check_hooks(self.directory, os.geteuid()), [])
        self.assertEqual(check_hooks(self.directory, os.geteuid() + 1), [refused])
        moved = self.directory.rename(self.directory.with_name("moved"))
        self.directory.symlink_to(moved)
        await self.denied(refused)

    def test_copies_of_editors_are_no_hooks(self) -> None:
        for name in ("pre-exec~", ".pre-exec.swp", "#pre-exec#", "README", "post-exec", "pre-exec-2"):
            self.hook(name, ":")
        found = [path.name for path in find_hooks(self.directory, "pre", os.geteuid())]
        self.assertEqual(found, ["pre-exec-2"])

    async def test_after_an_action_all_are_told(self) -> None:
        self.hook("post-exec-1", 'echo \'{"decision": "deny", "reason": "enough"}\'')
        self.hook("post-exec-2", f'cat >\'{self.mark}\'; echo \'{{"decision": "modify", "command": "ls"}}\'')
        self.hook("pre-exec", "exit 1")
        ran = HookAction(command="df", directory="/", risk="read", instruction="x", step=2, exit_code=1, duration_ms=12)
        verdict = await Deferred.fromCoroutine(self.hooks.after(ran))
        self.assertEqual(verdict, HookVerdict("deny", "enough", "", "post-exec-1"))
        told = json.loads(self.mark.read_text())
        self.assertEqual((told["exit_code"], told["duration_ms"]), (1, 12))
        (self.directory / "post-exec-1").unlink()
        verdict = await Deferred.fromCoroutine(self.hooks.after(ran))
        self.assertEqual(verdict.reason, "the hook post-exec-2 wants another command, but this one has run")


class AnswerTests(SynchronousTestCase):
    def test_answers(self) -> None:
        for output, decision in (
            (b'{"decision": "allow", "command": "rm -rf /"}', "allow"),
            (b'{"decision": "deny"}\n', "deny"),
            (b'{"decision": "Allow"}', "deny"),
            (b'{"decision": "allow"} x', "deny"),
            (b'{"decision": "allow"}{"decision": "allow"}', "deny"),
            (b'["allow"]', "deny"),
            (b'{"decision": "modify", "command": ["ls"]}', "deny"),
            (b'{"decision": "modify", "command": " "}', "deny"),
            (b"[" * 100_000, "deny"),
        ):
            verdict = read_answer(output, "h")
            self.assertEqual((verdict.decision, verdict.command), (decision, ""), output[:60])

    @given(
        st.binary(max_size=40) | st.from_regex(rb'\A\{"decision": ?"(allow|deny|modify)"(, "command": "[a\\"]*")?\}\Z')
    )
    def test_only_a_clear_answer_allows(self, output: bytes) -> None:
        verdict = read_answer(output, "h")
        if verdict.decision != "deny":
            self.assertEqual(json.loads(output)["decision"], verdict.decision)
        self.assertEqual(bool(verdict.command), verdict.decision == "modify")
