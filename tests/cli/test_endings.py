"""What ends a command is sent several times where a terminal's window is closed: the clean-up goes on all the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.spec import Listener, Sandbox
from tests.cli.cases import ProductCase
from tests.machine import demand_sandbox
from tests.mcp_proxy.support import FAKE_SERVER
from tests.product import LIMIT, Command, until, wait_until

CLOSED = (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP)
"""What programs in a window get that is closed, give or take one."""


class SeveralSignalTests(ProductCase):
    """With a server that needs SIGKILL, so that the clean-up takes seconds."""

    def setUp(self) -> None:
        super().setUp()
        line = f"trap '' TERM; {sys.executable} -S {FAKE_SERVER}; exec sleep 60"
        server = {"command": "/bin/sh", "args": ["-c", line], "env": {"TOOLS": "echo"}, "sandbox": "none"}
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"stubborn": server}}))
        if os.geteuid() == 0:  # the server lies where another account may not be able to go
            self.product.environ["IRONCURTAIN_RUN_AS"] = "root"
        self.script = self.product.script({"text": "slow " * 400, "delay": 0.1})

    def ends(self, process: Command, status: int) -> None:
        """The command is closed, and leaves nothing undone."""
        wait_until(lambda: any(session["state"] == "ready" for session in self.product.sessions()))
        process.send_signal(CLOSED[0])
        wait_until(lambda: all(session["state"] != "ready" for session in self.product.sessions()))
        for number in CLOSED[1:]:
            process.send_signal(number)  # nothing happens if a busy machine was too slow, and the clean-up is over
        _, said = process.communicate(timeout=LIMIT)
        self.assertIn(process.returncode, (128 + CLOSED[0], status), said)
        self.assertNotIn("Traceback", said)
        self.assertEqual([record["kind"] for record in self.product.audit()[-2:]], ["end", "checkpoint"])

    def test_a_conversation(self) -> None:
        self.ends(self.product.start("start", "--backend", self.script), 143)

    def test_a_task(self) -> None:
        process = self.product.start("start", "--backend", self.script, "do it")
        until(process.stderr, "Agent:")
        wait_until(self.product.sessions)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: all(session["state"] == "closing" for session in self.product.sessions()))
        for number in CLOSED:
            process.send_signal(number)
        _, said = process.communicate(timeout=LIMIT)
        self.assertEqual((process.returncode, "Traceback" in said), (143, False), said)
        self.assertEqual([record["kind"] for record in self.product.audit()[-2:]], ["end", "checkpoint"])

    def test_a_proxy_at_a_socket(self) -> None:
        self.ends(self.product.start("mcp-proxy", "--socket", str(self.product.person / "mcp.sock")), 129)


class ClientTests(ProductCase):
    """``mcp-proxy`` ends with the program that started it, in whatever order that one's pipes are closed."""

    def gone(self, *streams: str) -> None:
        process = self.product.start("mcp-proxy")
        assert process.stdin is not None
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        messages: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/list"},
        ]
        for message in messages:
            print(json.dumps({"jsonrpc": "2.0", **message}), file=process.stdin, flush=True)
        until(process.stdout, '"id":2')
        for name in streams:
            getattr(process, name).close()
            setattr(process, name, None)
        _, said = process.communicate(timeout=LIMIT)
        routine = ("MCP servers run as", "sandboxes are made with", "they do not")
        unexpected = [line for line in (said or "").splitlines() if not any(words in line for words in routine)]
        self.assertEqual((process.returncode, unexpected), (0, []))
        self.assertEqual([record["kind"] for record in self.product.audit()[-2:]], ["end", "checkpoint"])

    def test_while_a_server_is_being_downloaded(self) -> None:
        demand_sandbox(Sandbox(listeners=(Listener("127.0.0.1", 80),)))
        programs = self.product.person / "programs"
        programs.mkdir()
        asked = '[ "$1" = install ] || exec echo https://registry.example/'
        (programs / "npm").write_text(f"#!/bin/sh\n{asked}\nexec sleep 600\n")
        (programs / "npm").chmod(0o755)
        self.product.environ["PATH"] = f"{programs}:{self.product.environ['PATH']}"
        self.product.home.mkdir(mode=0o700)
        server = {"command": "npx", "args": ["-y", "some-server"]}
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"some": server}}))
        self.gone("stdin", "stdout")

    def test_first_its_input(self) -> None:
        self.gone("stdin", "stdout")

    def test_first_its_output(self) -> None:
        self.gone("stdout", "stdin")

    def test_all_at_once(self) -> None:
        self.gone("stderr", "stdin", "stdout")


AFTERWARDS = """
import signal
from ironcurtain.cli.run import HANDLED, run

async def nothing(reactor):
    return [signal.getsignal(number) for number in HANDLED]

before = [signal.getsignal(number) for number in HANDLED]
assert run(nothing) != before
assert before == [signal.getsignal(number) for number in HANDLED]
"""


class AfterwardsTests(SynchronousTestCase):
    def test_question_that_a_command_asks_later_is_left_by_ctrl_c(self) -> None:
        done = subprocess.run([sys.executable, "-c", AFTERWARDS], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
