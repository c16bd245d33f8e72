"""What each role may do over SSH, with a session in another process than the one that serves SSH."""

from __future__ import annotations

import json
import subprocess

from twisted.trial.unittest import SynchronousTestCase

from tests.product import LIMIT, Product
from tests.ssh_daemon import SshDaemon

OUTSIDE = {"code": "print(filesystem.read_text_file('~/secret.txt'))"}
DONE = {"text": "All done."}


class OtherProcessTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        (self.product.person / "secret.txt").write_text("the moon is far")
        roles = "view", "approve", "attach"
        self.daemon = SshDaemon(self, self.product, *roles)
        for role in roles:  # one login each, for all commands
            self.connect(role, "-M", "-N", "-f")
            self.addCleanup(self.connect, role, "-O", "exit")

    def shared(self, role: str) -> tuple[str, str]:
        return "-S", str(self.product.person / f"{role}.sock")

    def connect(self, role: str, *options: str) -> None:
        command = self.daemon.ssh(role, *self.shared(role), *options)
        subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
        )

    def ssh(self, role: str, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.daemon.ssh(role, *self.shared(role)), command],
            stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=LIMIT, check=False,
        )  # fmt: skip

    def test_each_command_needs_its_role_and_no_other(self) -> None:
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE), "look outside")
        while "1" not in self.ssh("view", "escalations").stdout:
            self.assertIsNone(process.poll())
        (waiting,) = json.loads(self.ssh("view", "escalations --json").stdout)
        for needed, commands in (
            ("view", ("sessions", "escalations", "escalations show 1", "permissions", "logs 1", "audit 1", "report 1")),
            ("approve", ("approve 1", "deny 1", "deny all", "revoke 1", "approve 99")),
            ("attach", ("stop 1",)),
        ):
            for role in {"view", "approve", "attach"} - {needed}:
                for command in commands:
                    done = self.ssh(role, command)
                    said = f"ironcurtain: {role} may not do this: it needs the role {needed}\n"
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (77, "", said), command)
        for command, status in (
            ("approve 99", 69),
            ("revoke 99", 69),
            ("approve 1", 1),
            (f"approve 1 --digest {waiting['digest']}", 0),
        ):
            done = self.ssh("approve", command)
            self.assertEqual(done.returncode, status, f"{command}: {done.stderr}")
        self.assertEqual(process.communicate()[0], "All done.\n")
