"""``ironcurtain prove``, as people run it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest

from ironcurtain.sandbox import bubblewrap
from tests import engine
from tests.cli.cases import ProductCase

SERVERS = ("mcp-server-fetch", "mcp-server-git", "mcp-server-time")


class CommandTests(ProductCase):
    timeout = 600

    def setUp(self) -> None:
        super().setUp()
        if (problem := bubblewrap.available()) is not None:
            raise SkipTest(problem)

    def servers(self, **more: object) -> None:
        found = {name: shutil.which(name, path=str(Path(sys.executable).parent)) for name in SERVERS}
        self.product.home.mkdir(mode=0o700, exist_ok=True)
        entries = {name.removeprefix("mcp-server-"): {"command": path, **more} for name, path in found.items() if path}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": entries}))

    def test_the_built_in_agent_and_three_servers(self) -> None:
        self.servers()
        done = self.product.run("prove")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("5 places were tested; all held.", done.stdout)
        self.assertNotIn("Not tested", done.stdout)

    def test_without_bubblewrap_by_the_engine(self) -> None:
        others = self.product.person / "programs"
        others.mkdir()
        for program in (found for place in ("/usr/bin", "/usr/sbin") for found in Path(place).iterdir()):
            if program.name != "bwrap" and not os.path.lexists(others / program.name):
                (others / program.name).symlink_to(program)
        path = f"{Path(sys.executable).parent}:{others}"
        self.servers()
        self.product.environ |= {**engine.environment(), "PATH": path}
        done = self.product.run("prove", "--server", "git")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 places were tested; all held.", done.stdout)
        told = self.product.run("doctor")
        self.assertIn("MCP servers and git run in containers of the Docker Engine", told.stdout)
        self.product.environ["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
        told = self.product.run("doctor")
        self.assertEqual(told.returncode, 1)
        self.assertIn("MCP server git: does not start: no sandbox can be made for it", told.stdout)
        self.assertIn("bwrap is not installed (Debian: apt-get install bubblewrap); nor does the Docker", told.stdout)

    def test_a_server_outside_any_sandbox_does_not_hold(self) -> None:
        self.servers(sandbox="none")
        done = self.product.run("prove", "--server", "git", "--json")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertFalse(json.loads(done.stdout)[0]["held"])

    def test_what_is_not_tested_is_named(self) -> None:
        self.product.run("init")
        done = self.product.run("prove")
        self.assertIn("Not tested: filesystem is IronCurtain's own server", done.stdout)
        self.assertIn("2 places were tested; all held.", done.stdout)

    def test_an_unknown_server(self) -> None:
        done = self.product.run("prove", "--server", "nobody")
        self.assertEqual((done.returncode, "no server nobody" in done.stderr), (69, True))
