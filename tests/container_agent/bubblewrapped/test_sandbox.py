from __future__ import annotations

import os
import signal
from glob import glob

from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.container.errors import ContainerDied, ProbeFailed
from ironcurtain.container.spec import Mount
from ironcurtain.container_agent.bubblewrapped.description import INSTALLED, interpreter
from ironcurtain.prove.outside import Outside, Room
from ironcurtain.prove.sandboxes import prove_agent
from tests.container.support import Until
from tests.container_agent.bubblewrapped.support import BubblewrappedCase
from tests.machine import UID

PROCESSES = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"

CONNECT = "import socket; print(socket.create_connection(('127.0.0.1', 18080)).recv(99).decode())"


class LifeTests(BubblewrappedCase):
    async def test_programs_see_the_session_and_nothing_else(self) -> None:
        sandbox = self.sandbox()
        findings = await sandbox.start()
        self.assertEqual({finding.problem for finding in findings}, {""})
        ended, said = await self.sh(sandbox, 'id -un; pwd; echo "$HOME $A$B"; touch /workspace/a ~/b; exit 3')
        self.assertEqual((ended.status, said), (3, "agent\n/workspace\n/home/agent 12\n"))
        self.assertEqual((self.top / "workspace" / "a").stat().st_uid, UID)
        _, said = await self.sh(
            sandbox, "touch /x /etc/x /run/x /usr/x /etc/ironcurtain/x; ls /home /root; cat /etc/hosts"
        )
        self.assertEqual(said.count("Read-only file system"), 5)
        self.assertNotIn("bash_history", said)
        self.assertIn("agent\n", said)

    async def test_apt_sees_what_is_installed_and_nothing_else_of_dpkg(self) -> None:
        sandbox = await self.started()
        _, said = await self.sh(sandbox, "test ! -e /var || find /var -type f")
        self.assertEqual(said.splitlines(), glob(INSTALLED))

    async def test_what_is_left_running_lives_on_until_all_is_ended(self) -> None:
        sandbox = await self.started()
        running = "until grep -q ^sleep /proc/$!/cmdline; do sleep 0.01; done"
        await self.sh(sandbox, f"setsid sleep 77777 & {running}; echo x >/tmp/kept")
        _, said = await self.sh(sandbox, f"cat /tmp/kept; {PROCESSES}")
        self.assertTrue(said.startswith("x\n"))
        self.assertIn("sleep 77777", said)
        self.assertTrue(await sandbox.end_programs())
        self.assertNotIn("sleep 77777", (await self.sh(sandbox, PROCESSES))[1])

    async def test_input_arrives_whole_and_output_too(self) -> None:
        sandbox = await self.started()
        data = b"x" * 300_000
        ended, said = await self.sh(sandbox, "cat; sleep 1000 &", data)
        self.assertEqual((ended.status, len(said)), (0, len(data)))
        self.assertEqual((await self.sh(sandbox, "cat; echo end"))[1], "end\n")

    async def test_open_program_answers_until_its_input_is_closed(self) -> None:
        sandbox = await self.started()
        answered = Until("first")
        program = await sandbox.open(
            ("sh", "-c", 'while read -r word; do echo "$word"; done; exit 4'),
            stdout=answered, stderr=lambda _: None, environment={},
        )  # fmt: skip
        program.write(b"first\n")
        await answered.seen
        program.close_input()
        self.assertEqual((await program.ended).status, 4)

    async def test_cancelling_ends_what_ignores_signals(self) -> None:
        from ironcurtain.container_agent.bubblewrapped import sandbox as module

        self.patch(module, "GRACE_SECONDS", 0.2)
        sandbox = await self.started()
        up = Until("up")
        line = ("sh", "-c", "trap '' TERM; (trap '' TERM; setsid sleep 77777 &) ; echo up; while :; do sleep 1; done")
        running = Deferred.fromCoroutine(sandbox.run(line, stdin=b"", stdout=up, stderr=lambda _: None, environment={}))
        await up.seen
        running.cancel()
        with self.assertRaises(CancelledError):
            await running
        self.assertNotIn("sleep", (await self.sh(sandbox, PROCESSES))[1].replace("cat /proc", ""))

    async def test_first_program_that_the_agent_stops_ends_the_sandbox(self) -> None:
        from ironcurtain.container_agent.bubblewrapped import sandbox as module

        self.patch(module, "COUNT_SECONDS", 0.3)
        sandbox = await self.started()
        stopped = Until("stopped")
        program = await sandbox.open(
            ("sh", "-c", "kill -STOP $PPID; echo stopped; exec sleep 1000"),
            stdout=stopped, stderr=lambda _: None, environment={},
        )  # fmt: skip
        await stopped.seen
        self.assertFalse(await sandbox.crowded())
        await self.assertFailure(program.ended, ContainerDied)
        await self.died
        self.assertIn("signal 9", self.deaths[0])

    async def test_program_that_does_not_exist_is_named(self) -> None:
        sandbox = await self.started()
        said = bytearray()
        ended = await sandbox.run(
            ("no-such-program",), stdin=b"", stdout=said.extend, stderr=said.extend, environment={}
        )
        self.assertEqual((ended.status, said), (127, b"no-such-program: No such file or directory\n"))

    async def test_death_is_reported_and_fails_what_runs(self) -> None:
        sandbox = await self.started()
        up = Until("up")
        line = ("sh", "-c", "echo up; sleep 1000")
        program = await sandbox.open(line, stdout=up, stderr=lambda _: None, environment={})
        await up.seen
        os.kill(int(sandbox.id), signal.SIGKILL)
        with self.assertRaisesRegex(ContainerDied, "the sandbox ended: it was ended by signal 9"):
            await program.ended
        await self.died
        self.assertEqual(len(self.deaths), 1)

    async def test_an_agent_that_ends_the_first_program_ends_its_sandbox_only(self) -> None:
        sandbox = await self.started()
        with self.assertRaises(ContainerDied):
            await self.sh(sandbox, "kill -9 2; sleep 10")
        await self.died

    async def test_crowd_is_noticed_and_can_be_ended(self) -> None:
        sandbox = await self.started()
        ended, _ = await self.sh(sandbox, "for i in $(seq 100); do sleep 1000 & done")
        self.assertTrue(ended.out_of_processes)
        self.assertTrue(await sandbox.crowded())
        self.assertTrue(await sandbox.end_programs())
        self.assertFalse(await sandbox.crowded())


class NetworkTests(BubblewrappedCase):
    async def test_proxy_accepts_on_a_socket_inside_and_nothing_else_is_reached(self) -> None:
        sandbox = await self.started()
        self.assertEqual((await self.sh(sandbox, f'python3 -c "{CONNECT}"'))[1], "here is the proxy\n")
        other = CONNECT.replace("18080", "22").replace("127.0.0.1", "192.0.2.1")
        self.assertIn("unreachable", (await self.sh(sandbox, f'python3 -c "{other}" 2>&1'))[1])

    async def test_two_at_once_are_apart(self) -> None:
        first, second = await self.started(), await self.started()
        serve = "python3 -m http.server --directory /tmp 8000 >/dev/null 2>&1 & sleep 77777 &"
        await self.sh(first, serve)
        ask = "import socket; socket.create_connection(('127.0.0.1', 8000))"
        self.assertIn("refused", (await self.sh(second, f'python3 -c "{ask}" 2>&1'))[1])
        self.assertNotIn("77777", (await self.sh(second, PROCESSES))[1])


class ProbeTests(BubblewrappedCase):
    async def test_socket_of_another_program_in_the_workspace_is_refused(self) -> None:
        self.listen(self.top / "workspace" / "engine.sock")
        with self.assertRaisesRegex(ProbeFailed, "a program of this machine listens on"):
            await self.sandbox().start()

    async def test_further_mounts_are_as_ordered(self) -> None:
        (self.top / "more").mkdir()
        (self.top / "workspace" / "file").write_text("x")
        sandbox = await self.started(
            self.plan(Mount(str(self.top / "more"), "/srv/more"), Mount(str(self.top / "passwd"), "/workspace/file"))
        )
        _, said = await self.sh(sandbox, "touch /srv/more/x; head -c 5 /workspace/file; echo >/workspace/file")
        self.assertIn("root:", said)
        self.assertEqual(said.count("Read-only file system"), 2)
        # Where bubblewrap is not safe for this, another one is around it, which must go on.
        await self.sh(sandbox, "setsid sleep 77777 &")
        self.assertTrue(await sandbox.end_programs())
        self.assertNotIn("77777", (await self.sh(sandbox, PROCESSES))[1])


class HostileTests(BubblewrappedCase):
    async def test_hostile_program_gets_nowhere(self) -> None:
        sandbox = await self.started(self.plan(pids=256))
        with Outside(self.top, self.account.switched) as outside:
            room = Room(1 << 30, 16 << 20)
            report = await prove_agent("it", sandbox.run, interpreter(), room, outside, self.account.switched)
        self.assertTrue(report.complete)
        self.assertGreater(len(report.attempts), 100)
        self.assertEqual([attempt for attempt in report.attempts if attempt.outcome == "succeeded"], [])
        self.assertEqual(report.seen, ())
