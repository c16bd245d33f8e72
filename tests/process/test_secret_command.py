"""Real commands under the real reactor; the time limit alone is played by a clock."""

from __future__ import annotations

import os
import signal
from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.errors import Unavailable
from ironcurtain.process.secret_command import COMMAND_SECONDS, OUTPUT_LIMIT, secret_from_command
from ironcurtain.secrets.redaction import Secret
from tests.process.commands import PlayedTime, RealCommandCase


class CommandTests(RealCommandCase):
    def run_shell(self, script: str, **environ: str) -> Deferred[Secret]:
        around: Any = PlayedTime(self.clock)
        argv = ("/bin/sh", "-c", script, "sh", str(self.mark))
        environ = {"PATH": os.environ["PATH"], **environ}
        return Deferred.fromCoroutine(secret_from_command(around, argv, environ, "my command"))

    async def fails(self, running: Deferred[Secret]) -> str:
        error = await self.assertFailure(running, Unavailable)
        return str(error)

    async def test_what_it_prints_is_the_secret(self) -> None:
        secret = await self.run_shell('printf " %s \\n\\r\\n" "$KEY"', KEY="a b")
        self.assertEqual(secret.reveal(), " a b ")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_it_has_no_input_and_leads_its_own_group(self) -> None:
        secret = await self.run_shell("cat; cut -d' ' -f5 /proc/$$/stat; echo $$; cut -d' ' -f6 /proc/$$/stat")
        group, pid, session = secret.reveal().split()
        self.assertEqual((group, session), (pid, pid))

    async def test_failures_are_told_without_what_was_printed(self) -> None:
        for script, wanted in (
            ("echo sesame; exit 3", "ended with status 3 and a value"),
            ("true", "ended with status 0 and no value"),
            ("echo; echo", "ended with status 0 and no value"),
            ("echo sesame; kill -9 $$", "ended with status None and a value"),
        ):
            message = await self.fails(self.run_shell(script))
            self.assertEqual(message, f"the command 'my command' {wanted}")

    async def test_endless_output_ends_it(self) -> None:
        message = await self.fails(self.run_shell('echo $$ >"$1"; cat /dev/zero'))
        self.assertEqual(message, f"the command 'my command' printed more than {OUTPUT_LIMIT // 1024} KiB")
        await self.gone(await self.marked())

    async def test_after_the_time_limit_its_whole_group_is_killed(self) -> None:
        running = self.run_shell('trap \'\' TERM; sh -c \'trap "" TERM; echo $$ >"$1"; sleep 60; :\' sh "$1"; :')
        pid = await self.marked()
        self.clock.advance(COMMAND_SECONDS - 0.1)
        os.kill(pid, 0)
        self.clock.advance(0.2)
        self.assertEqual(await self.fails(running), "the command 'my command' took more than 60 s")
        await self.gone(pid)

    async def test_cancelling_kills_its_whole_group(self) -> None:
        running = self.run_shell('sh -c \'echo $$ >"$1"; sleep 60; :\' sh "$1"; :')
        pid = await self.marked()
        running.cancel()
        await self.assertFailure(running, CancelledError)
        await self.gone(pid)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    async def test_what_it_leaves_running_on_purpose_stays(self) -> None:
        secret = await self.run_shell("sleep 60 >/dev/null 2>&1 & echo $!")
        pid = int(secret.reveal())
        os.kill(pid, signal.SIGKILL)

    async def test_a_program_that_does_not_exist(self) -> None:
        around: Any = PlayedTime(self.clock)
        running = Deferred.fromCoroutine(secret_from_command(around, ("/no/such/program",), {}, "it"))
        self.assertIn("ended with status 127 and no value", await self.fails(running))
