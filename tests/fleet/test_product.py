"""Two machines as one: the installed product in two homes, and a server of NATS between them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from nats.aio.client import Client
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.joining import read_credentials
from ironcurtain.fleet.server_files import QUEUE, TASK_SUBJECTS
from ironcurtain.fleet.tasks import Task
from tests.fleet.hosts import ME, Host
from tests.ports import free_port
from tests.product import Command, wait_until
from tests.ssh_daemon import new_key, ssh_command

NEWLINE = b"\n"


class FleetTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.laptop, self.build = Host("laptop"), Host("build-3")
        self.server: subprocess.Popen[bytes] | None = None
        self.addCleanup(self.finish)
        said = self.laptop.fleet("init", "laptop", "--listen", f"127.0.0.1:{free_port()}")
        self.files = said.split("nats-server -c ")[1].split()[0]
        self.ticket = str(self.build.product.person / "build-3.join")
        self.laptop.fleet("add", "build-3", "--output", self.ticket)

    def finish(self) -> None:
        for host in (self.laptop, self.build):
            host.end()
        if self.server is not None:
            self.server.terminate()
            self.server.wait()
        for host in (self.laptop, self.build):
            self.assertEqual(host.product.close(), [])

    def serve(self) -> None:
        program = Path(sys.executable).parent / "nats-server"
        self.server = subprocess.Popen([program, "-c", self.files], stderr=subprocess.DEVNULL)

    def join(self, *roles: str) -> None:
        self.build.fleet("join", self.ticket, "--person", f"{ME}={','.join(roles)}", "--person", "ada=view")
        self.laptop.fleet("trust", "build-3", self.build.fleet("key").strip(), "--person", f"{ME}=view")
        self.serve()
        self.laptop.begin()
        self.build.begin()
        wait_until(lambda: self.laptop.sees("build-3", "here") and self.build.sees("laptop", "here"))

    def ask(self, starter: Host | None = None, *words: str) -> Command:
        """
        :param starter: where the command is given, if not on that host.
        :returns: a session of the other host, whose agent wants to read a file outside its workspace.
        """
        line = ("start", *words, "--backend", self.build.questions(), "Read it")
        return (starter or self.build).product.start(*line, stdin=subprocess.DEVNULL)

    def waiting(self) -> list[Any]:
        """:returns: what laptop lists, once there is something to list: the command is slow to wait with."""
        found: list[Any] = self.laptop.product.json("escalations") if self.build.asking else []
        return found

    def verified(self) -> str:
        return self.laptop.product.run("audit", "verify", "build-3/1").stdout

    def test_a_question_of_one_host_is_answered_at_the_other(self) -> None:
        self.join("view", "approve")
        session = self.ask()
        (asked,) = wait_until(self.waiting)
        self.assertEqual((asked["number"], asked["session"]), ("build-3/1", "build-3/1"))
        self.assertIn("build-3/1", self.laptop.product.run("sessions").stdout)
        for name in ("1", "last"):  # of this host, where there is none
            self.assertIn("there is no session", self.laptop.product.run("stop", name).stderr.replace("running ", ""))
        self.laptop.product.run("escalations", "show", "build-3/1")
        self.assertEqual(self.laptop.product.run("approve", "build-3/1").returncode, 0)
        self.assertIn("All done.", session.communicate()[0])
        (record,) = [record for record in self.build.product.audit() if record.get("outcome") == "approved"]
        self.assertTrue(record["by"].endswith("@laptop"), record)
        self.assertIn("the session is closed", self.laptop.product.run("logs", "build-3/1").stdout)
        (log,) = self.build.product.home.glob("sessions/*/audit.jsonl")
        whole = log.read_bytes()
        wait_until(lambda: self.laptop.witnesses(self.build))
        self.assertIn(f"same head of record {whole.count(NEWLINE) - 1}", self.verified())
        self.assertIn("Intact.", self.verified())
        for wrong in (whole.replace(b"names.txt", b"other.txt"), b"".join(whole.splitlines(keepends=True)[:-3])):
            log.write_bytes(wrong)
            self.assertIn("NOT intact", self.verified())
        self.assertIn("no session 9", self.laptop.product.run("logs", "build-3/9").stderr)
        for words in (("build-3/1",), ("--all",)):
            report = self.laptop.product.run("report", *words)
            self.assertEqual(report.returncode, 1)  # its log was changed above
            self.assertIn("Session build-3/1: ", report.stdout)
            self.assertRegex(report.stdout, r"approved +local:\w+@laptop")
        self.assertIn("another machine's", self.laptop.product.run("diff", "build-3/1").stderr)

    def test_a_session_is_started_on_the_other_host(self) -> None:
        self.join("admin")
        script = self.build.product.script({"text": "All done."})
        words = ("start", "--on", "build-3", "--backend", script, "--json", "Read it")
        done = json.loads(self.laptop.product.run(*words).stdout)
        self.assertEqual(done["answer"], "All done.")
        self.assertTrue(done["session"]["workspace"].startswith(str(self.build.product.home)), done)
        (first,) = [record for record in self.build.product.audit() if record["kind"] == "session"]
        self.assertTrue(first["by"].endswith("@laptop"), first)
        session = self.ask(self.laptop, "--on", "build-3")
        wait_until(self.waiting)
        session.kill()  # as for a session of the local daemon, it ends with the command that holds it
        wait_until(lambda: not self.build.product.sessions())

    def test_a_task_is_taken_by_a_host_with_room_and_starts_once(self) -> None:
        self.join("admin")
        script = self.build.product.script({"text": "All done."})
        begun = self.laptop.product.run("start", "--on", "any", "--backend", script, "Read it")
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.laptop.product.run("start", "--label", "gpu", "Train it")
        wait_until(lambda: self.tasks()[0]["state"] == "ended")
        self.assertEqual([(task["state"], task["host"]) for task in self.tasks()][1:], [("waiting", "")])
        self.assertRegex(self.laptop.product.run("fleet", "status").stdout, r"ended +build-3/1")
        (path,) = self.build.product.home.glob("sessions/*/audit.jsonl")
        first, second = (self.offer(task) for task in self.tasks())
        forged = second.replace(rb"\"labels\":[\"gpu\"]", rb"\"labels\":[]")
        self.assertNotEqual(forged, second)
        asyncio.run(self.publish({self.tasks()[0]["id"]: first, "f" * 16: forged}))  # an old message, and a forged one
        wait_until(lambda: asyncio.run(self.queued()) == 2)  # the old one is taken away
        self.assertEqual(self.laptop.product.run("fleet", "take-back", self.tasks()[1]["id"]).returncode, 0)
        self.assertEqual(self.tasks()[1]["state"], "withdrawn")
        self.assertEqual(list(self.build.product.home.glob("sessions/*/audit.jsonl")), [path])

    def tasks(self) -> list[Any]:
        found: list[Any] = json.loads(self.laptop.fleet("status", "--json"))["tasks"]
        return found

    def offer(self, task: Any) -> bytes:
        key = SigningKey.load(self.laptop.product.home / "audit")
        assert key is not None
        return msgspec.convert(task, Task).offer("laptop", key)

    async def publish(self, offers: dict[str, bytes]) -> None:
        client = await self.connect()
        for task, offer in offers.items():
            await client.jetstream().publish(f"{TASK_SUBJECTS}.laptop.{task}", offer, stream=QUEUE)
        await client.close()

    async def queued(self) -> int:
        client = await self.connect()
        queue = await client.jetstream().stream_info(QUEUE)
        await client.close()
        return queue.state.messages

    async def connect(self) -> Client:
        """:returns: whoever has all of a host's permissions at the server."""
        client = Client()
        await client.connect(**read_credentials(self.laptop.product.home / "fleet.credentials").options())
        return client

    def test_a_host_whose_trust_is_taken_back_counts_no_longer(self) -> None:
        self.join("view", "approve")
        session = self.ask()
        wait_until(self.waiting)
        (self.build.product.home / "fleet.trust").write_text("version = 1\n")
        self.laptop.product.run("escalations", "show", "build-3/1")
        self.assertNotEqual(self.laptop.product.run("approve", "build-3/1").returncode, 0)
        self.assertEqual(self.build.product.json("escalations")[0]["outcome"], "")
        self.assertEqual(self.build.product.run("deny", "1").returncode, 0)
        session.communicate()

    def test_who_may_only_look_decides_nothing(self) -> None:
        ada = self.let_in("ada")
        self.join("view")
        session = self.ask()
        wait_until(self.waiting)
        self.laptop.product.run("escalations", "show", "build-3/1")
        self.assertIn("needs the role approve", self.laptop.product.run("approve", "build-3/1").stderr)
        self.assertIn("needs the role attach", self.laptop.product.run("stop", "build-3/1").stderr)
        refused = self.laptop.product.run("start", "--on", "build-3", "Read it")
        self.assertIn("may not do this: it needs the role admin", refused.stderr)
        self.assertIn("fleet.trust does not name other", self.laptop.product.run("start", "--on", "other", "x").stderr)
        self.build.product.run("deny", "1")
        session.communicate()
        wait_until(lambda: self.laptop.witnesses(self.build))
        report = subprocess.run([*ada, "report build-3/1"], capture_output=True, text=True, check=False)
        self.assertEqual(report.returncode, 0, report.stdout)
        self.assertIn("Session build-3/1: ", report.stdout)
        self.assertRegex(report.stdout, r"denied +local:\w+")

    def let_in(self, name: str) -> list[str]:
        """:returns: the command line with which somebody reaches the daemon of laptop, once it runs, over SSH."""
        key, port = self.laptop.product.person / "key", free_port()
        new_key(key, name)
        added = self.laptop.product.run("ssh", "add-key", "--roles", "view", f"{key}.pub")
        self.assertEqual(added.returncode, 0, added.stderr)
        self.laptop.product.environ["IRONCURTAIN_SSH_PORT"] = str(port)
        return ssh_command(key, port)

    def test_without_the_server_each_host_works_alone(self) -> None:
        self.join("view", "approve")
        assert self.server is not None
        self.server.kill()
        self.server.wait()
        wait_until(lambda: self.laptop.known["unreached"])
        for command in ("sessions", "escalations"):
            self.assertIn("server is not reached since", self.laptop.product.run(command).stderr)
        session = self.ask()
        wait_until(lambda: self.build.asking)
        self.build.product.run("escalations", "show", "1")
        self.assertEqual(self.build.product.run("approve", "1").returncode, 0)
        self.assertIn("All done.", session.communicate()[0])
        self.serve()
        wait_until(lambda: not self.laptop.known["unreached"])
        self.assertEqual(self.laptop.product.run("sessions").stderr, "")
