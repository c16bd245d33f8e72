"""The daemon as systemd runs it: in the foreground, heard over a socket, ended and reloaded by signals."""

from __future__ import annotations

import contextlib  # trial takes a name `suppress` here for its own
import json
import os
import signal
import socket
import subprocess
import sys
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.ports import free_port
from tests.product import Command, Product, children, until, wait_until

OUTSIDE = {
    "code": "try:\n    print(filesystem.read_text_file('~/secret.txt'))\nexcept PermissionError as e:\n    print(e)"
}
DONE = {"text": "All done."}
PATIENCE = 120.0
STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.run([sys.executable, "-I", "-m", "ironcurtain.servers.files", *sys.argv[1:]])
signal.pause()
"""
"""An MCP server that ends when it is killed, and not before."""


class DaemonCase(SynchronousTestCase):
    """A daemon of its own for each test."""

    def setUp(self) -> None:
        self.product = Product()
        (self.product.person / "secret.txt").write_text("the moon is far")
        self.product.home.mkdir(mode=0o700)
        if os.geteuid() == 0:  # our Python is not always where another user reaches it
            self.product.environ["IRONCURTAIN_RUN_AS"] = "0"
        self.addCleanup(self.finish)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.socket.close)
        self.socket.bind(str(self.product.person / "notify"))
        self.socket.settimeout(PATIENCE)

    def finish(self) -> None:
        self.assertEqual(self.product.close(), [])

    def begin(self, *words: str, **variables: str) -> Command:
        """:returns: a daemon that tells what it does."""
        heard = {"NOTIFY_SOCKET": str(self.product.person / "notify"), **variables}
        process = self.product.daemon("ironcurtain", *words, **heard)
        self.addCleanup(self._end, process)
        return process

    def _end(self, process: Command) -> None:
        if process.poll() is None:
            process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def heard(self, wanted: str) -> dict[str, str]:
        """:returns: the first message that holds an assignment, by name."""
        while True:
            message = dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())
            if wanted in message:
                return message

    def ended(self, process: Command) -> tuple[int, str]:
        """:returns: its status, and what it wrote."""
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out + err

    def setting(self, line: str) -> None:
        """Have one line of settings."""
        (self.product.home / "config.toml").write_text(line)

    def asking(self) -> Command:
        """:returns: a session that takes messages."""
        before = self.started()
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE))
        wait_until(lambda: self.started() > before or process.poll() is not None)
        self.assertIsNone(process.poll())
        return process

    def started(self) -> int:
        """:returns: how many sessions have started."""
        return sum(session["state"] != "initializing" for session in self.product.sessions())

    def ask(self, process: Command) -> float:
        """Have a session ask a person. :returns: for how many seconds it waits."""
        known = {view["number"] for view in self.product.json("escalations")}
        assert process.stdin is not None
        process.stdin.write("look outside\n")
        process.stdin.flush()
        wait_until(lambda: sum(session["pending"] for session in self.product.sessions()) > len(known))
        new = [view for view in self.product.json("escalations") if view["number"] not in known]
        expires, raised = (datetime.fromisoformat(new[0][name]) for name in ("expires_at", "raised_at"))
        return round((expires - raised).total_seconds())


class HeardTests(DaemonCase):
    """What systemd hears."""

    def test_it_is_ready_when_it_serves_and_says_when_it_ends(self) -> None:
        daemon = self.begin()
        self.assertEqual(self.heard("READY")["STATUS"], "serves sessions, without SSH")
        self.assertEqual(self.product.json("sessions"), [])
        daemon.terminate()
        self.assertIn("STOPPING", self.heard("STOPPING"))
        self.assertEqual(self.ended(daemon)[0], -signal.SIGTERM)

    def test_it_is_not_ready_when_it_did_not_start(self) -> None:
        (self.product.home / "ssh").mkdir(mode=0o700)
        (self.product.home / "ssh" / "host_key").write_text("no key")
        (self.product.home / "ssh" / "host_key").chmod(0o600)
        status, text = self.ended(self.begin("--ssh-port", str(free_port())))
        self.assertEqual(status, 78, text)
        self.assertIn("IronCurtain did not start: ", text)
        self.assertIn("host_key", text)
        self.assertNotIn("READY", self.heard("STATUS"))

    def test_the_watchdog_hears_it_again_and_again(self) -> None:
        self.begin(WATCHDOG_USEC="200000")
        for _ in range(3):
            self.heard("WATCHDOG")

    def test_the_watchdog_of_another_process_does_not(self) -> None:
        daemon = self.begin(WATCHDOG_USEC="200000", WATCHDOG_PID="1")
        self.assertNotIn("WATCHDOG", self.heard("READY"))
        daemon.terminate()
        self.assertIn("STATUS", self.heard("STOPPING"))

    def test_its_children_inherit_none_of_it(self) -> None:
        server = {
            "command": sys.executable,
            "args": ["-I", "-m", "ironcurtain.servers.files", "$WORKSPACE"],
            "env_command": {"KEY": "env >~/environment; echo key"},  # it is run with all that the daemon has
        }
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"filesystem": server}}))
        self.begin(WATCHDOG_USEC="60000000")
        self.heard("READY")
        self.asking()
        names = [line.partition("=")[0] for line in (self.product.person / "environment").read_text().splitlines()]
        self.assertIn("IRONCURTAIN_SSH_PORT", names)
        self.assertEqual([name for name in names if name == "NOTIFY_SOCKET" or name.startswith("WATCHDOG_")], [])


class ReloadTests(DaemonCase):
    """SIGHUP, and ``ironcurtain reload``."""

    def test_new_sessions_have_the_new_settings_and_running_ones_keep_theirs(self) -> None:
        self.setting("[escalation]\ntimeout_seconds = 200")
        daemon = self.begin()
        self.heard("READY")
        before = self.asking()
        self.setting("[escalation]\ntimeout_seconds = 100")
        daemon.send_signal(signal.SIGHUP)
        self.assertIn("MONOTONIC_USEC", self.heard("RELOADING"))
        self.heard("READY")
        after = self.asking()
        self.assertEqual((self.ask(before), self.ask(after)), (200, 100))

    def test_the_command_says_what_is_new(self) -> None:
        self.begin()
        self.heard("READY")
        self.setting("[escalation]\ntimeout_seconds = 100\n[ssh]\nlisten = ['127.0.0.2']")
        self.assertEqual(
            self.product.json("reload"),
            {"changed": ["escalation.timeout_seconds", "ssh.listen"], "restart": ["ssh.listen"]},
        )
        done = self.product.run("reload")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (0, 1), done.stdout)

    def test_a_wrong_file_is_told_everywhere_and_changes_nothing(self) -> None:
        self.setting("[escalation]\ntimeout_seconds = 200")
        daemon = self.begin()
        self.heard("READY")
        for name, text in (
            ("policy.toml", "rule = 3"),
            ("mcp-servers.json", "{"),
            ("config.toml", "[escalation]\ntimeout = 1"),
        ):
            self.setting("[escalation]\ntimeout_seconds = 100")
            path = self.product.home / name
            path.write_text(text)
            done = self.product.run("reload")
            self.assertEqual(done.returncode, 78)
            self.assertIn(name, done.stderr)
            self.assertIn(f"nothing was reloaded: {path}", self.heard("READY")["STATUS"])
            path.unlink()
        self.assertEqual(self.ask(self.asking()), 200)
        daemon.terminate()
        self.assertEqual(self.ended(daemon)[1].count("nothing was reloaded: "), 3)

    def test_without_a_daemon(self) -> None:
        done = self.product.run("reload")
        self.assertEqual(done.returncode, 69)
        self.assertIn("no daemon is running in ", done.stderr)


class StartTests(DaemonCase):
    """What only a command of its own can start, asked of the control API."""

    def setUp(self) -> None:
        super().setUp()
        self.begin()
        self.heard("READY")

    def post(self, **body: object) -> tuple[int, dict[str, Any]]:
        """Ask for a session. :returns: the status and the answer."""
        connection = HTTPConnection("x", timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(self.product.home / "run" / "daemon.sock"))
            connection.request("POST", "/v1/sessions", json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def refusal(self, **body: object) -> str:
        """:returns: why there is no session."""
        status, answer = self.post(**body)
        self.assertEqual((status, answer.get("error", {}).get("code")), (400, "USAGE"), answer)
        self.assertEqual(self.product.json("sessions"), [])
        return str(answer["error"]["message"])

    def test_a_loop_that_ended(self) -> None:
        self.assertEqual(self.product.run("loop", "-n", "1", "-p", "work", "--", "true").returncode, 3)
        (path,) = self.product.home.glob("sessions/*/session.json")
        before = path.read_bytes()
        for kind in ("", "loop"):
            self.assertIn("ironcurtain loop --resume", self.refusal(kind=kind, resume=path.parent.name))
        self.assertEqual(path.read_bytes(), before)
        options = json.loads(before)["options"]
        self.assertIn("ironcurtain loop", self.refusal(kind="loop", options=options))

    def test_mcp_clients_need_a_socket(self) -> None:
        for options in ({}, {"socket": ""}, {"socket": "relative.sock"}, {"socket": 7}, {"socket": "/x\0y"}):
            self.assertIn("option 'socket'", self.refusal(kind="mcp-proxy", options=options))
        status, answer = self.post(kind="mcp-proxy", options={"socket": str(self.product.person / "mcp.sock")})
        self.assertEqual((status, answer["kind"]), (200, "mcp-proxy"), answer)
        self.assertTrue((self.product.person / "mcp.sock").is_socket())

    def test_clients_that_came_by_standard_streams_come_no_more(self) -> None:
        self.assertEqual(self.product.run("mcp-proxy", stdin="").returncode, 0)
        (path,) = self.product.home.glob("sessions/*/session.json")
        self.assertIn("option 'socket'", self.refusal(kind="", resume=path.parent.name))


class EndTests(DaemonCase):
    """Ended at several moments."""

    def end(self, daemon: Command, number: signal.Signals = signal.SIGTERM) -> str:
        """:returns: what it wrote."""
        daemon.send_signal(number)
        status, text = self.ended(daemon)
        self.assertEqual(status, -number, text)
        self.assertEqual(list((self.product.home / "run").iterdir()), [])
        return text

    def test_at_once(self) -> None:
        daemon = self.begin()
        until(daemon.stdout, "reactor class")
        self.end(daemon)

    def test_by_the_keyboard(self) -> None:
        daemon = self.begin()
        self.heard("READY")
        self.end(daemon, signal.SIGINT)

    def test_while_a_session_starts(self) -> None:
        servers = {"mcpServers": {"slow": {"command": sys.executable, "args": ["-c", "import signal; signal.pause()"]}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        daemon = self.begin()
        self.heard("READY")
        process = self.product.start("start", "--backend", self.product.script(DONE), "do it")
        wait_until(lambda: list(self.product.home.glob("sessions/*/audit.jsonl")))
        self.end(daemon)
        process.communicate()
        self.assertNotEqual(process.returncode, 0)

    def test_while_a_call_waits_for_a_person(self) -> None:
        daemon = self.begin()
        self.heard("READY")
        process = self.asking()
        self.ask(process)
        self.end(daemon)
        process.communicate()
        records = self.product.audit()
        self.assertEqual([r["outcome"] for r in records if r["kind"] == "decision"], ["withdrawn"])
        self.assertEqual([record["kind"] for record in records[-2:]], ["end", "checkpoint"])

    def stubborn(self) -> Command:
        """:returns: a daemon with a session whose server takes seconds to end."""
        arguments = ["-c", STUBBORN, "$WORKSPACE", "$HOME"]
        servers = {"mcpServers": {"filesystem": {"command": sys.executable, "args": arguments}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        daemon = self.begin()
        self.heard("READY")
        self.asking()
        return daemon

    def test_a_server_that_does_not_want_to_end_is_killed(self) -> None:
        self.assertNotIn("the daemon exits although not everything has stopped", self.end(self.stubborn()))

    def test_a_second_signal_does_not_wait_for_that(self) -> None:
        daemon = self.stubborn()
        daemon.terminate()
        self.heard("STOPPING")
        daemon.terminate()
        status, text = self.ended(daemon)
        self.assertEqual(status, -signal.SIGTERM)
        self.assertIn(
            "the daemon exits although not everything has stopped: a second signal came",
            text,
        )
        # Nothing is left all the same: a sandbox ends with the process that started it.
        wait_until(lambda: all(b"signal.pause" not in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children()))
