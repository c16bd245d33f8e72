"""Commands as a person uses them: real processes, real MCP server, real interpreter; only the model is scripted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.cli.cases import DaemonCase, ProductCase
from tests.model_stub.process import StubProcess
from tests.ports import free_port
from tests.product import LIMIT, Command, until, wait_until
from tests.ssh_daemon import new_key

LIST = {"code": "print(filesystem.list_directory('.'))"}
OUTSIDE = {
    "code": "try:\n    print(filesystem.read_text_file('~/secret.txt'))\nexcept PermissionError as e:\n    print(e)"
}
DONE = {"text": "All done."}
SAID = {"content": [{"type": "text", "chunks": ["All ", "done."]}]}
CANARY = "sk-ant-api03-canary-of-nobody-0123456789abcdef"


def holds(path: Path, text: str) -> bool:
    """:returns: whether a file holds a text."""
    return text.encode() in path.read_bytes()


ISO = r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ$"
"""Every time that a command prints for programs."""


class SingleShotTests(ProductCase):
    def test_the_answer_alone_is_on_standard_output_and_its_record_is_shown_later(self) -> None:
        done = self.product.run("start", "--backend", self.product.script(LIST, DONE), "do it")
        self.assertEqual((done.returncode, done.stdout), (0, "All done.\n"), done.stderr)
        self.assertIn("Agent: builtin", done.stderr)
        self.assertIn("filesystem.list_directory", done.stderr)
        for words, shown in (
            (["logs"], ""),
            (["audit", "show"], "filesystem.list_directory"),
            (["audit", "show", "1"], ""),
            (["audit", "verify", "last"], ""),
        ):
            done = self.product.run(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(shown, done.stdout)
        missing = self.product.run("audit", "show", "77")
        self.assertEqual(missing.returncode, 69)

    def test_nobody_to_ask_is_a_refusal_at_once(self) -> None:
        done = self.product.run("start", "--backend", self.product.script(OUTSIDE, DONE), "do it")
        self.assertEqual(done.returncode, 0, done.stderr)
        (outcome,) = [record for record in self.product.audit() if record["kind"] == "outcome"]
        self.assertEqual(outcome["error"], "nobody-to-ask")

    def test_a_model_that_fails_is_status_1_with_its_reason(self) -> None:
        done = self.product.run("start", "--backend", self.product.script(LIST), "do it")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("another one was requested", done.stderr)

    def test_a_server_that_does_not_start_is_reported(self) -> None:
        self.product.home.mkdir(mode=0o700)
        servers = {"mcpServers": {"absent": {"command": "no-such-program"}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        done = self.product.run("start", "--backend", self.product.script(DONE), "do it")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the MCP server absent did not start: there is no program 'no-such-program'", done.stderr)
        self.assertIn("no-such-program", self.product.run("logs").stdout)

    def test_a_server_that_does_not_start_is_told_to_whoever_serves_clients(self) -> None:
        self.product.home.mkdir(mode=0o700)
        servers = {"mcpServers": {"absent": {"command": "no-such-program"}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        process = self.product.start("mcp-proxy", "--workspace", ".")
        said = "the MCP server absent did not start: there is no program 'no-such-program'"
        until(process.stderr, said)
        self.assertIn(said, self.product.run("sessions").stdout)
        self.assertIn("no-such-program", self.product.json("sessions")[0]["servers_down"]["absent"])
        findings = json.loads(self.product.run("doctor", "--json").stdout)
        (found,) = (f for f in findings if f["what"] == "MCP server absent" and "session" in f["detail"])
        self.assertEqual(found["state"], "wrong")
        process.communicate()

    def test_a_server_outside_any_sandbox_is_reported(self) -> None:
        self.product.home.mkdir(mode=0o700)
        servers = {"mcpServers": {"free": {"command": "cat", "sandbox": "none"}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        process = self.product.start("start", "--backend", self.product.script(DONE))
        until(process.stderr, "runs outside any sandbox")
        found = wait_until(self.product.sessions)
        self.assertEqual(found[0]["unsandboxed"], ["free"])
        self.assertIn("outside any sandbox runs the MCP server free.", self.product.run("sessions").stdout)
        process.kill()
        process.communicate()

    def test_a_missing_key_is_named_with_what_to_do(self) -> None:
        done = self.product.run("start", "do it")
        self.assertEqual(done.returncode, 78)
        self.assertIn("set ANTHROPIC_API_KEY", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_an_unknown_agent_names_those_there_are(self) -> None:
        done = self.product.run("start", "--agent", "nobody", "do it")
        self.assertEqual(done.returncode, 64)
        self.assertIn("builtin", done.stderr)

    def test_a_whole_home_is_refused_as_a_workspace(self) -> None:
        done = self.product.run("start", "--backend", self.product.script(DONE), "--workspace", "~", "do it")
        self.assertEqual(done.returncode, 64)
        self.assertIn("choose a project's directory", done.stderr)

    def test_nothing_is_explained_where_no_session_could_be(self) -> None:
        (self.product.person / ".ssh").mkdir()
        for place in (self.product.person, self.product.person / "none", self.product.person / ".ssh"):
            words = ["--workspace", str(place)]
            explained = self.product.run("policy", "explain", *words, "filesystem.read_text_file", "path=x")
            started = self.product.run("start", "--backend", self.product.script({"text": "Yes."}), *words, "Hello.")
            self.assertEqual((explained.returncode, explained.stdout), (64, ""))
            self.assertIn(explained.stderr, started.stderr)

    def test_a_setting_that_is_wrong_is_named_with_its_line(self) -> None:
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "config.toml").write_text("[agent]\nmax_steps = 0\n")
        done = self.product.run("start", "do it")
        self.assertEqual(done.returncode, 78)
        self.assertIn("config.toml:2: agent.max_steps", done.stderr)

    def test_signals_end_it_with_their_status_and_nothing_stays(self) -> None:
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)):
            script = self.product.script({"text": "slow " * 400, "delay": 0.1}, DONE)
            process = self.product.start("start", "--backend", script, "do it")
            until(process.stderr, "Agent:")
            self.product_ready(process)
            process.send_signal(number)
            if number == signal.SIGINT:
                until(process.stderr, "cancel")
            process.communicate()
            self.assertIn(process.returncode, (status, 1) if number == signal.SIGINT else (status,))

    def product_ready(self, process: object) -> None:
        """Wait until the session has started: the signal must meet it at work."""
        wait_until(lambda: any(session["state"] != "initializing" for session in self.product.sessions()))


class ModelTests(ProductCase):
    """The model of a provider, over HTTPS, with the configuration that ``init`` writes."""

    def setUp(self) -> None:
        super().setUp()
        self.assertEqual(self.product.run("init").returncode, 0)
        self.product.environ["ANTHROPIC_API_KEY"] = CANARY

    def play(self, *replies: dict[str, Any]) -> StubProcess:
        """Let a server on this machine play the model."""
        stub = StubProcess(*replies, keys={"anthropic": CANARY})
        self.addCleanup(stub.close)
        table = f'[providers.anthropic]\nbase_url = "{stub.url}"\nca_file = "{stub.ca}"\n'
        path = self.product.home / "config.toml"
        path.write_text(path.read_text().replace("[providers.anthropic]\n", table))
        return stub

    def test_an_answer(self) -> None:
        stub = self.play(SAID)
        done = self.product.run("start", "do it")
        self.assertEqual((done.returncode, done.stdout), (0, "All done.\n"), done.stderr)
        self.assertEqual(len(stub.turns), 1)
        self.assertEqual([path for path in self.product.home.rglob("*") if path.is_file() and holds(path, CANARY)], [])

    def test_what_a_session_used_counts_when_it_goes_on(self) -> None:
        stub = self.play(SAID, SAID, SAID)
        self.product.environ["IRONCURTAIN_BUDGET_TOKENS"] = "1"
        for _ in range(2):  # the request that reaches the limit is still answered
            done = self.product.run("start", "do it")
            self.assertEqual((done.returncode, done.stdout), (0, "All done.\n"), done.stderr)
        done = self.product.run("start", "--resume", "last", "go on")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("budget used up", done.stderr)
        self.assertEqual(stub.left, 1)


class ConversationTests(ProductCase):
    def test_answers_that_cannot_be_written_are_a_failure(self) -> None:
        words = self.product.command("start", "--backend", self.product.script(DONE))
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                words, env=self.product.environ, cwd=self.product.project, text=True, input="do it\n", stdout=full,
                stderr=subprocess.PIPE, timeout=LIMIT, check=False,
            )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("ironcurtain: left session 1: the output cannot be written: No space left on device", done.stderr)

    def test_another_terminal_sees_and_answers_what_waits(self) -> None:
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE))
        assert process.stdin is not None
        process.stdin.write("look outside\n")
        process.stdin.flush()
        until(process.stderr, "/approve 1")
        (waiting,) = self.product.json("escalations")
        self.assertEqual(waiting["arguments"], {"path": str(self.product.person / "secret.txt")})
        self.assertRegex(waiting["raised_at"], ISO)
        (session,) = self.product.json("sessions")
        self.assertEqual(session["pending"], 1)
        self.assertRegex(session["started_at"], ISO)
        stale = self.product.run("approve", "1", "--digest", "0" * 64)
        self.assertEqual(stale.returncode, 1)
        self.assertIn("other arguments", stale.stderr)
        done = self.product.run("approve", "1", "--digest", waiting["digest"])
        self.assertEqual((done.returncode, done.stdout), (0, "Approved: filesystem.read_text_file in session 1.\n"))
        until(process.stdout, "All done.")
        late = self.product.run("deny", "1")
        self.assertIn("too late: escalation 1 was approved by local:", late.stderr)
        _, err = process.communicate("/quit\n")
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(self.product.json("sessions"), [])

    def test_an_approval_that_is_kept_lets_the_next_call_pass_until_it_is_revoked(self) -> None:
        (self.product.person / "docs").mkdir()
        reads = [{"code": f"print(filesystem.read_text_file('~/docs/{name}.txt'))"} for name in ("one", "two", "three")]
        for name in ("one", "two", "three"):
            (self.product.person / "docs" / f"{name}.txt").write_text(name)
        done = [{"text": "First."}, {"text": "Second."}]
        script = self.product.script(reads[0], done[0], reads[1], done[1], reads[2], DONE)
        process = self.product.start("start", "--backend", script)
        assert process.stdin is not None
        self.say(process, "read one")
        until(process.stderr, "/approve 1 or")
        scope = f"filesystem.read_text_file in {self.product.person}/docs and below"
        self.assertIn(f"an approval can be kept for: {scope}", self.product.run("escalations").stdout)
        kept = self.product.run("approve", "1", "--keep")
        self.assertEqual(kept.returncode, 0, kept.stderr)
        self.assertIn(f"From now on nobody is asked about: {scope}.\n", kept.stdout)
        until(process.stdout, "First.")
        self.say(process, "read two")
        until(process.stderr, "as kept with escalation 1")
        until(process.stdout, "Second.")
        (permission,) = self.product.json("permissions")
        self.assertRegex(permission["since"], ISO)
        self.assertEqual((permission["number"], permission["scope"], permission["used"]), (1, scope, 1))
        self.assertTrue(self.product.run("permissions").stdout.startswith(f"1  {scope}\n   kept by local:"))
        revoked = self.product.run("revoke", "1")
        self.assertEqual(revoked.stdout, f"Revoked: you are asked again about {scope} in session 1.\n")
        self.assertEqual(self.product.run("permissions").stdout, "No kept approvals.\n")
        self.assertEqual(self.product.run("revoke", "1").returncode, 69)
        self.say(process, "read three")
        until(process.stderr, "/approve 2 or")
        self.assertEqual(self.product.run("deny", "2").returncode, 0)
        process.communicate("/quit\n")
        kinds = [record["kind"] for record in self.product.audit()]
        self.assertEqual((kinds.count("permission"), kinds.count("permission-revoked")), (1, 1))
        unasked = [record for record in self.product.audit() if record["kind"] == "decision" and "permission" in record]
        self.assertEqual([(record["outcome"], record["permission"]) for record in unasked], [("approved", 1)])

    def say(self, process: Command, message: str) -> None:
        """Send a message in the session's own terminal."""
        assert process.stdin is not None
        process.stdin.write(f"{message}\n")
        process.stdin.flush()

    def test_a_killed_owner_leaves_no_process_and_an_intact_record(self) -> None:
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE))
        assert process.stdin is not None
        process.stdin.write("look outside\n")
        process.stdin.flush()
        until(process.stderr, "/approve 1")
        process.kill()
        process.communicate()
        self.assertEqual(self.product.json("sessions"), [])
        verified = self.product.run("audit", "verify")
        self.assertEqual(verified.returncode, 0, verified.stdout)
        self.assertIn("not ended", verified.stdout)


class DaemonTests(DaemonCase):
    def test_its_files_are_the_owner_s_alone(self) -> None:
        for path in ("twistd.pid", "logs/ironcurtain.log", "run/daemon.sock", "daemon.lock"):
            self.assertEqual((self.product.home / path).lstat().st_mode & 0o777, 0o600, path)

    def test_what_it_makes_in_a_workspace_has_the_umask_of_whoever_started_the_daemon(self) -> None:
        self.product.project.chmod(0o777)  # as root, the session runs as another account
        code = "filesystem.create_directory('made')\nfilesystem.write_file('made/file.txt', 'x')"
        making = {"text": "I write.", "code": code}
        done = self.product.run("start", "--workspace", ".", "--backend", self.product.script(making, DONE), "write")
        self.assertEqual(done.returncode, 0, done.stderr)
        modes = [(self.product.project / name).stat().st_mode & 0o777 for name in ("made", "made/file.txt")]
        self.assertEqual(modes, [0o755, 0o644])

    def test_a_session_runs_in_the_daemon_and_ends_with_its_client(self) -> None:
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE), "look outside")
        wait_until(lambda: any(session["pending"] for session in self.product.sessions()))
        (entry,) = (self.product.home / "pty-registry").glob("*.json")
        self.assertIn(f'"pid":{self.pid}', entry.read_text())
        process.kill()
        process.communicate()
        while "end" not in [record["kind"] for record in self.product.audit()[-2:]]:
            time.sleep(0.02)
        self.assertEqual(self.product.json("sessions"), [])

    def test_a_single_shot_without_terminal_waits_for_a_person_there(self) -> None:
        process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE), "look outside")
        wait_until(lambda: any(session["pending"] for session in self.product.sessions()))
        self.assertEqual(self.product.run("deny", "1").returncode, 0)
        out, err = process.communicate()
        self.assertEqual((process.returncode, out), (0, "All done.\n"), err)

    def test_what_takes_long_is_shown_and_can_be_given_up(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"https://127.0.0.1:{silent.getsockname()[1]}/project.git"
            process = self.product.start("start", "--repo", address, "do it")
            assert process.stderr is not None
            self.assertIn(address, until(process.stderr, "loning"))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
            self.assertEqual((process.returncode, err), (130, ""))
            (directory,) = (self.product.home / "sessions").iterdir()
            while (described := json.loads((directory / "session.json").read_text()))["state"] != "closed":
                time.sleep(0.02)
        self.assertEqual(described["reason"], "cancelled while starting")

    def test_a_second_daemon_in_the_same_home_says_so(self) -> None:
        done = self.product.twistd("--pidfile", "other.pid", "-n", "ironcurtain")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("a daemon is already running in", done.stdout + done.stderr)


class SshTests(ProductCase):
    def test_whoever_has_a_key_sees_and_decides_what_waits(self) -> None:
        key = self.product.person / "key"
        new_key(key, "ada@laptop")
        added = self.product.run("ssh", "add-key", f"{key}.pub", "--roles", "view,approve")
        self.assertEqual(added.returncode, 0, added.stderr)
        port = free_port()
        done = self.product.twistd("ironcurtain", "--ssh-port", str(port))
        self.assertEqual(done.returncode, 0, done.stderr)
        pid = int((self.product.home / "twistd.pid").read_text())
        try:
            self.assertEqual(self.ssh(port, key, "sessions").returncode, 0)  # it listens when twistd returns
            process = self.product.start("start", "--backend", self.product.script(OUTSIDE, DONE), "look outside")
            wait_until(lambda: any(session["pending"] for session in self.product.sessions()))
            self.assertIn("1", self.ssh(port, key, "escalations").stdout)
            approved = self.ssh(port, key, "approve", "1")
            self.assertEqual((approved.returncode, approved.stderr), (0, ""))
            self.assertEqual(process.communicate()[0], "All done.\n")
            [decision] = [record for record in self.product.audit() if record["kind"] == "decision"]
            self.assertIn("ada@laptop", decision["by"])
            self.assertEqual(self.ssh(port, key, "approve", "7").returncode, 69)
        finally:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)

    def ssh(self, port: int, key: Path, *words: str) -> subprocess.CompletedProcess[str]:
        options = ["-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-q"]
        return subprocess.run(
            ["ssh", *options, "-o", "IdentitiesOnly=yes", "-i", key, "-p", str(port), "localhost", *words],
            stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=LIMIT, check=False,
        )  # fmt: skip


class TwistdTests(ProductCase):
    def test_help_explains_the_options(self) -> None:
        done = self.product.twistd("-n", "ironcurtain", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--home", done.stdout)

    def test_another_reactor_is_refused_in_a_sentence(self) -> None:
        done = self.product.twistd("--reactor=epoll", "-n", "ironcurtain")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("needs --reactor=asyncio", done.stdout + done.stderr)
