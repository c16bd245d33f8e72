"""An agent's ``git push``: from its commit in a sandbox to a git server, decided by a person wherever that sits."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.container_agent.test_real_agents import CLAUDE, PATIENCE, text
from tests.container_agent.test_real_network import shell
from tests.container_agent.test_real_without_docker import WithoutDockerCase
from tests.git_server import PASSWORD, GitServer
from tests.machine import UID
from tests.product import wait_until
from tests.ssh_daemon import SshDaemon
from tests.tmux import Tmux

COMMIT = "echo {0} >{0} && git add . && git commit -qm {0} && git rev-parse --abbrev-ref HEAD"


class PushTests(WithoutDockerCase):
    def test_a_person_decides_about_each_push(self) -> None:
        self.play(CLAUDE, "claude")
        product = self.product
        top = product.person / "served"
        top.mkdir()
        self.server = server = GitServer(self, top)
        ran = product.person / "ran"
        hook = f"printf '#!/bin/sh\\ntouch {ran}\\n' >.git/hooks/pre-push && chmod +x .git/hooks/pre-push"
        self.prepare()
        remote = SshDaemon(self, product, "approve")
        self.terminal = self.opened()
        self.terminal.type(f"ironcurtain start --agent {CLAUDE.id} --workspace .")
        self.terminal.wait("^>$")

        # In the conversation.
        asked = self.ask("Commit and push.", [shell(f"{hook}; {COMMIT.format('two')}")], branch="main")
        self.assertEqual(server.log("main"), ["one"])
        shown = self.terminal.wait("/approve")
        for part in ("git-remote.git_push", server.url, "branch", "main"):
            self.assertIn(part, shown)
        self.decide("/approve", asked)
        self.answered()
        self.assertEqual(server.log("main"), ["two", "one"])

        # The same call again is asked again, and refused.
        asked = self.ask("Push once more.", [shell(COMMIT.format("three"))], branch="main")
        self.decide("/deny", asked)
        self.assertIn("denied", self.answered().lower())
        self.assertEqual(server.log("main"), ["two", "one"])

        # Another branch, over SSH.
        asked = self.ask("Push a branch.", [shell("git checkout -qb topic")], branch="topic")
        line = remote.ssh("approve")
        done = subprocess.run(
            [*line, "approve", str(asked["number"]), "--digest", asked["digest"]],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.answered()
        self.assertEqual(server.log("topic"), ["three", "two", "one"])

        # What is not a descendant is refused by the server, unless it is forced, which a person sees in the console.
        rewrite = [shell("git checkout -q main && git reset -q --hard HEAD~2 && " + COMMIT.format("other"))]
        asked = self.ask("Rewrite it.", rewrite, branch="main")
        self.approve_elsewhere(asked)
        self.assertIn("rejected", self.answered())
        self.assertEqual(server.log("main"), ["two", "one"])
        asked = self.ask("Force it.", [], branch="main", force=True)
        console = self.opened()
        console.type("ironcurtain escalation-listener")
        shown = console.wait("digest ")
        self.assertRegex(shown, r"force = true")
        console.keys("a")
        console.wait(r"y yes .*/ command$")
        console.keys("y")
        self.answered()
        console.keys("q")
        self.assertEqual(server.log("main"), ["other", "one"])

        self.terminal.type("/quit")
        self.terminal.wait(r"^\$$")
        outcomes = [each["outcome"] for each in product.audit() if each["kind"] == "decision"]
        self.assertEqual(outcomes, ["approved", "denied", "approved", "approved", "approved"])
        self.assertFalse(ran.exists())
        self.assertNotIn(PASSWORD, json.dumps([turn["json"] for turn in self.stub.turns]))
        for path in product.home.glob("sessions/**/*"):
            if path.is_file() and not path.is_symlink():
                self.assertNotIn(PASSWORD.encode(), path.read_bytes(), path)

    def prepare(self) -> None:
        """Make the project a clone of the server's repository, for a person who has an account there."""
        product, server = self.product, self.server
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(self.model)
        command = {"command": sys.executable, "args": ["-I", "-m", "ironcurtain.servers.git_remote", "$WORKSPACE"]}
        servers = {"git-remote": {**command, "env": {"HOME": str(product.person)}}}  # for root: the account has no home
        (product.home / "mcp-servers.json").write_text(json.dumps({"version": 1, "mcpServers": servers}))
        (product.person / ".gitconfig").write_text(
            f"[user]\n\tname = Ada\n\temail = ada@example.com\n{server.settings}"
        )
        for line in (
            "init -q -b main", "commit -q --allow-empty -m one", f"remote add origin {server.url}",
            f"push -q {server.repository} main",
        ):  # fmt: skip
            subprocess.run(["git", *shlex.split(line)], cwd=product.project, env=product.environ, check=True)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", f"{UID}:{UID}", product.project], check=True)

    def opened(self) -> Tmux:
        """:returns: a terminal whose shell knows our commands."""
        made = Tmux(self.product, 100, 40, PATIENCE)
        self.addCleanup(made.close)
        made.type(f"PATH={Path(self.product.command()[0]).parent}:$PATH; PS1='$ '; clear")
        made.wait(r"^\$$")
        return made

    def ask(self, message: str, before: list[dict[str, Any]], **arguments: Any) -> dict[str, Any]:
        """:returns: the question about a push, for which a message asks the agent."""
        arguments |= {"url": self.server.url, "repository": str(self.product.project)}
        push = {"content": [{"type": "mcp_call", "name": "git-remote__git_push", "arguments": arguments}]}
        for reply in (*before, push, text(f"Done: {message}")):
            self.stub.add(reply)
        self.message = message
        self.terminal.type(message)
        (asked,) = wait_until(self.product.escalations, PATIENCE)
        return asked

    def decide(self, command: str, asked: dict[str, Any]) -> None:
        """Decide in the conversation, which takes no answer in the first second."""

        def decided() -> bool:
            if "too early" in self.terminal.text or not self.terminal.text.rstrip().endswith(command):
                self.terminal.type(f"{command} {asked['number']}")
            return not self.product.escalations()

        wait_until(decided, PATIENCE)

    def approve_elsewhere(self, asked: dict[str, Any]) -> None:
        """Approve by the command in another terminal."""
        done = self.product.run("approve", str(asked["number"]), "--digest", asked["digest"])
        self.assertEqual(done.returncode, 0, done.stderr)

    def answered(self) -> str:
        """:returns: what the agent was told of the push, once it has answered."""
        self.terminal.wait(f"Done: {self.message}")
        return str(self.stub.turns[-1]["results"])
