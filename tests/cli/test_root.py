"""Commands of root's: the session is an ordinary account's, whatever lies out of that account's reach."""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.product import Product

WRITE = {"code": "print(filesystem.write_file('made.txt', 'x'))"}
DONE = {"text": "All done."}
ACCOUNT = "4242"


class RootTests(SynchronousTestCase):
    def setUp(self) -> None:
        if os.geteuid():
            raise SkipTest("this is about root")
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))

    def start(self, *words: str, run_as: str = ACCOUNT) -> str:
        """:returns: the session's log."""
        self.product.environ["IRONCURTAIN_RUN_AS"] = run_as
        done = self.product.run("start", "--backend", self.product.script(WRITE, DONE), *words, "do it")
        self.assertEqual((done.returncode, done.stdout), (0, "All done.\n"), done.stderr)
        self.assertNotIn("failed", done.stderr)
        (log,) = self.product.home.glob("sessions/*/session.log")
        return log.read_text()

    def owner(self) -> int:
        (made,) = (*self.product.home.glob("sessions/*/sandbox/made.txt"), *self.product.project.glob("made.txt"))
        return made.stat().st_uid

    def test_a_sandbox_of_its_own_is_the_accounts(self) -> None:
        self.assertIn("MCP servers run as uid 4242\n", self.start())
        self.assertEqual(self.owner(), 4242)

    def test_a_workspace_is_its_owners(self) -> None:
        os.chown(self.product.project, 4243, 4243)
        self.assertIn("MCP servers run as uid 4243\n", self.start("--workspace", ".", run_as=""))
        self.assertEqual(self.owner(), 4243)

    def test_a_workspace_of_roots_is_roots(self) -> None:
        self.assertIn("the file server as root", self.start("--workspace", ".", run_as=""))
        self.assertEqual(self.owner(), 0)

    def test_root_may_insist(self) -> None:
        self.assertIn("WARNING: run_as is root", self.start(run_as="root"))
        self.assertEqual(self.owner(), 0)

    def test_another_server_is_not_run_as_root_instead(self) -> None:
        program = self.product.person / "server"
        program.write_text(f"#!/bin/sh\ntouch {self.product.person}/ran\n")
        program.chmod(0o755)
        self.product.person.chmod(0o700)
        self.product.home.mkdir(mode=0o700)
        servers = {"mcpServers": {"mine": {"command": str(program), "sandbox": "none"}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        self.product.environ["IRONCURTAIN_RUN_AS"] = ACCOUNT
        self.product.run("start", "--backend", self.product.script(DONE), "do it")
        (log,) = self.product.home.glob("sessions/*/session.log")
        self.assertIn("uid 4242, as whom MCP server mine runs, cannot execute", log.read_text())
        self.assertFalse((self.product.person / "ran").exists())
