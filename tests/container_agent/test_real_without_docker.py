"""Real agents without Docker, as a person runs them: the installed commands, and only the model played by a server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.process.accounts import Account
from ironcurtain.providers.registry import family
from ironcurtain.sandbox import bubblewrap
from tests.container_agent.test_real_agents import CLAUDE, CODEX, GEMINI, OPENCODE, PATIENCE, Agent, call, text
from tests.container_agent.test_real_network import NAME, Registry, shell
from tests.machine import UID
from tests.model_stub.process import StubProcess
from tests.product import Product, wait_until
from tests.programs import program

PROGRAMS = Path(os.environ.get("IRONCURTAIN_TEST_NODE", "."), "node_modules", ".bin")

FILES: Mapping[str, str] = {
    ".gitignore": "node_modules\n",
    "package.json": f'{{"scripts": {{"test": "node --test"}}, "dependencies": {{"{NAME}": "^1.0.0"}}}}',
    "index.js": f'const trim = require("{NAME}");\nmodule.exports = (name) => "Hello " + trim(name);\n',
    "test/greeting.test.js": """
const assert = require("node:assert");
require("node:test")("greets", () => assert.equal(require("../index.js")("  Ada"), "Hello, Ada trimmed"));
""",
}
"""A project whose test fails, at first because nothing is installed."""


OWN_SANDBOXES: Mapping[str, str] = {
    ".claude": '{"sandbox": {"enabled": true}}',
    ".gemini": '{"tools": {"sandbox": true}}',
}
"""Settings of a project with which agents make a sandbox of their own."""


class WithoutDockerCase(SynchronousTestCase):
    def play(self, agent: Agent, name: str, *replies: dict[str, Any], spoken: str = "", plain: bool = False) -> None:
        """
        Begin: the agent, a program of this machine, gets these answers of its model.

        :param spoken: the provider whose API it is, if not that of the agent's.
        :param plain: whether the model is reached without TLS.
        """
        if (reason := bubblewrap.available(Account(UID, UID).switched)) is not None:
            raise SkipTest(reason)
        if shutil.which(name, path=str(PROGRAMS)) is None:
            raise SkipTest(f"{name} is not installed (IRONCURTAIN_TEST_NODE names no such directory)")
        self.product = product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        product.person.chmod(0o755)
        product.environ |= {
            agent.variable: agent.canary,
            "PATH": f"{PROGRAMS.resolve()}:{product.environ['PATH']}",
            "DOCKER_HOST": f"unix://{product.person}/nothing.sock",
        }
        self.stub = StubProcess(*replies, keys={spoken or family(agent.provider): agent.canary}, plain=plain)
        self.addCleanup(self.stub.close)
        self.model = f'[providers.{agent.provider}]\nbase_url = "{self.stub.url}"\nca_file = "{self.stub.ca}"\n'

    def allowed(self, kind: str) -> int:
        """:returns: how many records of a kind there are of what was allowed."""
        records = [record for record in self.product.audit() if record["kind"] == kind]
        return len([record for record in records if record.get("decision") == "allow"])


class TurnTests(WithoutDockerCase):
    """
    A conversation with a tool of the MCP proxy, resumed, and with a project that asks for a sandbox of the agent's own.
    """

    def test_claude_code(self) -> None:
        self.converse(CLAUDE, "claude")

    def test_codex(self) -> None:
        self.converse(CODEX, "codex")

    def test_gemini(self) -> None:
        self.converse(GEMINI, "gemini")

    def test_opencode(self) -> None:
        self.converse(OPENCODE, "opencode")

    def converse(self, agent: Agent, name: str) -> None:
        self.play(
            agent,
            name,
            call("filesystem__write_file", path="/workspace/hello.txt", content="hello\n"),
            text("All ", "done."),
            text("Two."),
            text("Three."),
        )
        product = self.product
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(self.model)
        for directory, own_sandbox in OWN_SANDBOXES.items():
            (product.project / directory).mkdir()
            (product.project / directory / "settings.json").write_text(own_sandbox)
        product.project.chmod(0o777)
        process = product.start("start", "--agent", agent.id, "--workspace", ".")
        out, err = process.communicate("Do it.\nAnd then?\n/quit\n", timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, "All done.\nTwo.\n"), err)
        self.assertIn("the agent runs in a sandbox of bubblewrap", err)
        self.assertEqual((product.project / "hello.txt").read_text(), "hello\n")
        self.assertEqual(len(self.stub.turns), 3)
        self.assertGreaterEqual(self.allowed("model-request"), 3)  # Gemini CLI asks further ones, for the model to use
        again = product.start("start", "--resume", "last")
        out, err = again.communicate("What did I say first?\n/quit\n", timeout=PATIENCE)
        self.assertEqual((again.returncode, out), (0, "Three.\n"), err)
        self.assertIn("the agent runs in a sandbox of bubblewrap", err)
        asked = json.dumps(self.stub.turns[-1]["json"])
        self.assertIn("Do it.", asked)
        self.assertIn("All done.", asked.replace('"All ", "done."', "All done."))


class CompiledTests(WithoutDockerCase):
    def test_second_session_of_gemini_reads_what_was_compiled_during_the_first(self) -> None:
        look = {"name": "run_shell_command", "input": {"command": "echo at $NODE_COMPILE_CACHE"}}
        looking = {"content": [{"type": "tool_use", **look}]}
        self.play(GEMINI, "gemini", *(looking, text("First.")), *(looking, text("Second.")))
        product = self.product
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(self.model)
        product.project.chmod(0o777)
        first = product.start("start", "--agent", "gemini", "--workspace", ".")
        wait_until(lambda: list(product.home.glob("compiled-programs/gemini-*/*/v*/*")))
        out, err = first.communicate("Look.\n/quit\n", timeout=PATIENCE)
        self.assertEqual((first.returncode, out), (0, "First.\n"), err)
        out, err = product.start("start", "--agent", "gemini", "--workspace", ".").communicate("Look.\n", PATIENCE)
        self.assertEqual(out, "Second.\n", err)
        asked = [json.dumps(turn["json"]) for turn in self.stub.turns]
        self.assertEqual(["at /home/agent/.cache" in each for each in asked], [False, True, False, False])
        self.assertEqual(["at /run/compiled" in each for each in asked], [False, False, False, True])


class NewcomerTests(WithoutDockerCase):
    """The way of somebody new: a fresh clone, what the README says, and a test that is green in the end."""

    def test_a_fresh_clone_of_a_node_project_gets_a_green_test(self) -> None:
        npm = program("npm")
        self.play(
            CLAUDE,
            "claude",
            shell("npm test 2>&1"),
            shell("npm install 2>&1"),
            shell("sed -i 's/Hello /Hello, /' index.js && npm test 2>&1"),
            text("The test is green."),
        )
        product = self.product
        product.environ["PATH"] += f":{Path(npm).parent}"
        registry = Registry()
        Thread(target=registry.serve_forever, daemon=True).start()
        self.addCleanup(registry.server_close)
        self.addCleanup(registry.shutdown)
        clone = self.cloned()
        self.assertEqual(product.run("init").returncode, 0)
        settings = product.home / "config.toml"
        model = settings.read_text().replace("[providers.anthropic]\n", self.model)
        settings.write_text(f'{model}\n[registries.npm]\nurl = "{registry.url}"\n')
        done = product.run("start", "--agent", CLAUDE.id, "--workspace", str(clone), "Fix the failing test")
        self.assertEqual((done.returncode, done.stdout), (0, "The test is green.\n"), done.stderr)
        failed, installed, green = (str(turn["results"]) for turn in self.stub.turns[1:])
        self.assertIn("MODULE_NOT_FOUND", failed)
        self.assertIn("added 1 package", installed)
        self.assertIn("fail 0", green)
        self.assertNotIn("refused", done.stderr)
        self.assertIn(f"Fetched from package registries: {NAME} 1.0.0 (npm)", done.stderr)
        diff = product.run("diff")
        self.assertIn('+module.exports = (name) => "Hello, " + trim(name);', diff.stdout)
        self.assertNotIn(f"b/node_modules/{NAME}", diff.stdout)

    def cloned(self) -> Path:
        """:returns: a fresh clone of the project."""
        origin, clone = self.product.person / "origin", self.product.person / "greeter"
        for name, content in FILES.items():
            (origin / name).parent.mkdir(parents=True, exist_ok=True)
            (origin / name).write_text(content)
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        for line in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"], ["clone", "-q", ".", str(clone)]):
            subprocess.run([*git, *line], cwd=origin, env=self.product.environ, check=True)
        subprocess.run(["chown", "-R", f"{UID}:{UID}", clone] if os.geteuid() == 0 else ["true"], check=True)
        return clone
