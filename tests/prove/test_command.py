"""``ironcurtain prove``, as people run it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ironcurtain.mcp_proxy import launch
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import programs, promises
from ironcurtain.sandbox.spec import Kind, Sandbox
from tests import engine
from tests.cli.cases import ProductCase
from tests.machine import demand_sandbox

SERVERS = ("mcp-server-fetch", "mcp-server-git", "mcp-server-time")


class CommandCase(ProductCase):
    """A home with servers."""

    def setUp(self) -> None:
        super().setUp()
        demand_sandbox()

    def servers(self, names: Sequence[str] = SERVERS, **more: object) -> None:
        found = {name: shutil.which(name, path=str(Path(sys.executable).parent)) for name in names}
        self.product.home.mkdir(mode=0o700, exist_ok=True)
        entries = {name.removeprefix("mcp-server-"): {"command": path, **more} for name, path in found.items() if path}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": entries}))


class CommandTests(CommandCase):
    def test_a_server_outside_any_sandbox_does_not_hold(self) -> None:
        self.servers(sandbox="none")
        done = self.product.run("prove", "--server", "git", "--json")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertFalse(json.loads(done.stdout)[0]["held"])

    def test_network_by_configuration_and_own_servers(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))
        self.servers(sandbox={"network": ["example.org"]})
        file = self.product.home / "mcp-servers.json"
        servers = json.loads(file.read_text())["mcpServers"]
        servers["own"] = {"command": sys.executable, "args": [*launch.OWN_SERVERS[1], "$WORKSPACE"]}
        servers["tickets"] = {"url": "https://tickets.example.org/mcp"}
        file.write_text(json.dumps({"mcpServers": servers}))
        self.product.environ["IRONCURTAIN_SANDBOX_KIND"] = "bubblewrap"
        done = self.product.run("prove", "--server", "git", "--server", "own", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        reports = json.loads(done.stdout)
        self.assertEqual(
            [report["subject"].rpartition(":")[0] for report in reports],
            [
                "MCP server git, in its sandbox",
                "MCP server own, git in the workspace",
                "MCP server own, git in the network",
            ],
        )
        for report in reports[:2]:
            self.assertFalse(any("network" in what for what in report["not_limited"]))
        untested = {each["name"]: each["reason"] for each in reports[0]["not_tested"]}
        self.assertEqual(untested["MCP server tickets"], "it is reached by HTTP")
        self.assertLessEqual({"the built-in agent", "MCP server time", "the console"}, set(untested))

    def test_server_that_cannot_be_tested_gives_69(self) -> None:
        self.product.home.mkdir(mode=0o700, exist_ok=True)
        servers = {"gone": {"command": "/nowhere/server"}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": servers}))
        for words in ((), ("--json",)):
            done = self.product.run("prove", "--server", "gone", *words)
            self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
            self.assertIn(
                "Nothing was tested, so nothing is known. Not tested: MCP server gone (", done.stdout + done.stderr
            )
            self.assertNotIn("all held", done.stdout + done.stderr)

    def test_each_kind_of_sandbox_that_works_is_tested(self) -> None:
        if named := os.environ.get("DOCKER_HOST"):  # what a test may have started in this process
            self.product.environ["DOCKER_HOST"] = named
        tried = programs.problems(Sandbox(account=Account(61184, 61184).switched))
        working = [kind for kind, problem in tried if problem is None]
        self.product.run("init")
        file = self.product.home / "mcp-servers.json"
        own = json.loads(file.read_text())["mcpServers"]
        self.servers(["mcp-server-git"])
        file.write_text(json.dumps({"mcpServers": own | json.loads(file.read_text())["mcpServers"]}))
        done = self.product.run("prove", "--json")
        reports = json.loads(done.stdout)
        for report in reports:
            others = [attempt for attempt in report["attempts"] if attempt["outcome"] != "failed"]
            self.assertTrue(report["held"], (report["subject"], others, report["seen"], report["complete"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        subjects = [report["subject"] for report in reports]
        places = [kind for _ in range(2) for kind in working]
        around = [subject for subject in subjects if "in its sandbox: " in subject or "interpreter: " in subject]
        for kind, subject in zip(places, around, strict=True):
            limits = ", which does not hide names" if kind is Kind.LANDLOCK else ""
            self.assertIn(f": {promises.NAMES[kind]}{limits}", subject)
        self.assertEqual(len(subjects), len(around) + 3, subjects)
        self.assertIn("MCP server filesystem, by its own protocol", subjects)
        untested = {each["name"] for each in reports[0]["not_tested"]}
        self.assertLessEqual({"containers of agents", "protected files in sandboxes"}, untested)

    def test_an_unknown_server(self) -> None:
        done = self.product.run("prove", "--server", "nobody")
        self.assertEqual((done.returncode, "no server nobody" in done.stderr), (69, True))


class EngineTests(CommandCase):
    """The same with a Docker Engine."""

    def setUp(self) -> None:
        engine.engine()  # before the product, which counts the processes that it leaves
        super().setUp()

    def test_sandbox_of_the_engine_holds_and_its_absence_is_named(self) -> None:
        self.servers()
        self.product.environ |= {**engine.environment(), "IRONCURTAIN_SANDBOX_KIND": "container"}
        done = self.product.run("prove", "--server", "git")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 place was tested; all held.", done.stdout)
        self.assertIn("containers of the Docker Engine work: ", self.product.run("doctor").stdout)
        self.product.environ["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
        told = self.product.run("doctor")
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stdout, "MCP server git.*: does not start: no sandbox can be made for it")
        self.assertIn("sandbox: none can be made: there is no Docker Engine at unix:///nowhere", told.stdout)
