"""The commands that run no session: in this process, with a home of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli import COMMANDS, commands
from ironcurtain.cli.output import print_text
from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import bubblewrap, programs, promises
from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.product import LIMIT

EMPTY = "No sessions. Start one with: ironcurtain start\n"
"""What ``sessions`` says in an empty home."""

HELLO = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
)


class CommandCase(SynchronousTestCase):
    """Runs commands in a home of the test's."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="ic-")
        self.addCleanup(directory.cleanup)
        self.person = Path(directory.name)
        self.person.chmod(0o755)  # for whoever runs root's servers
        self.home = self.person / ".ironcurtain"
        self.environ = {"HOME": str(self.person), "IRONCURTAIN_HOME": str(self.home), "ANTHROPIC_API_KEY": ""}

    def run_command(self, *words: str) -> Result:
        return CliRunner().invoke(commands, list(words), env=self.environ)

    def json(self, *words: str) -> Any:
        return json.loads(self.run_command(*words, "--json").stdout)


class HelpTests(CommandCase):
    def test_help_of_every_command_teaches(self) -> None:
        for name in COMMANDS:
            result = self.run_command(name, "--help")
            self.assertEqual(result.exit_code, 0, name)
            self.assertGreater(len(result.output.splitlines()), 5, name)

    def test_every_help_fits_80_columns_and_no_summary_is_cut(self) -> None:
        def walk(command: click.Command, context: click.Context) -> Iterator[str]:
            yield from (
                f"{context.command_path}: {line}"
                for line in command.get_help(context).split("\n")
                if line[80:] or re.fullmatch(r"  [a-z-]+  .*\.\.\.", line)
            )
            if isinstance(command, click.Group):
                for name in command.list_commands(context):
                    below = command.get_command(context, name)
                    assert below is not None
                    yield from walk(below, click.Context(below, info_name=name, parent=context))

        context = click.Context(commands, info_name="ironcurtain", terminal_width=80)
        self.assertEqual(list(walk(commands, context)), [])

    def test_a_wrong_word_is_told_the_right_one(self) -> None:
        self.assertIn("Did you mean 'start'?", self.run_command("strat").output)
        self.assertIn("TASK is one argument: put it in quotes", self.run_command("start", "Fix", "the", "tests").output)

    def test_help_loads_nothing_that_is_slow(self) -> None:
        program = (
            "import sys; sys.argv = ['ironcurtain', '--help']\n"
            "from ironcurtain.cli import main\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "sys.exit(sum(name in sys.modules for name in ('twisted', 'treq', 'msgspec', 'asyncio')))"
        )
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 0)

    def test_an_unknown_command_is_wrong_usage(self) -> None:
        ironcurtain = str(Path(sys.executable).parent / "ironcurtain")
        for words in (["fly"], ["approve", "one"], ["start", "--fast"]):
            done = subprocess.run([ironcurtain, *words], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("Error", done.stderr)


class TextTests(SynchronousTestCase):
    def test_text_is_as_wide_as_the_terminal(self) -> None:
        @click.command()
        def tell() -> None:
            print_text("  1  " + "word " * 30 + "\n" + "/a/long/path" * 9)

        for width in (40, 80, 120):
            lines = CliRunner().invoke(tell, env={"COLUMNS": str(width)}).output.splitlines()
            self.assertEqual(lines[-1], "/a/long/path" * 9)  # to be copied in one piece
            self.assertTrue(width - 6 < max(map(len, lines[:-1])) <= width)
            self.assertTrue(all(line.startswith("  ") for line in lines[:-1]))


class StreamTests(CommandCase):
    """The standard streams are what somebody made of them: closed, or a pipe that nobody reads."""

    def run_with(
        self, streams: str, *words: str, stdin: str = "", stdout: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """:param streams: what a shell is told about them, such as ``>&-``."""
        return subprocess.run(
            ["/bin/sh", "-c", f'exec "$0" "$@" {streams}', str(Path(sys.executable).parent / "ironcurtain"), *words],
            env={**os.environ, **self.environ},
            input=stdin,
            timeout=LIMIT,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    def test_a_closed_stream_is_no_failure(self) -> None:
        for streams in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
            done = self.run_with(streams, "sessions")
            self.assertEqual((done.returncode, done.stderr), (0, ""), streams)
            self.assertEqual(done.stdout or "", "" if ">&-" in streams.split() else EMPTY, streams)

    def test_what_is_printed_goes_into_no_file_that_is_opened_instead(self) -> None:
        """The proxy speaks on descriptor 1; where that is closed, the session's log must not get the number."""
        (self.person / "project").mkdir()
        done = self.run_with(">&-", "mcp-proxy", "--workspace", str(self.person / "project"), stdin=HELLO)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("jsonrpc", done.stderr)  # as root, it says as whom servers run
        (directory,) = self.home.glob("sessions/*")
        texts = {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}
        self.assertIn("the client disconnected", texts["session.log"])
        self.assertEqual([name for name, text in texts.items() if "jsonrpc" in text], [])

    def test_a_failure_keeps_its_status(self) -> None:
        self.assertEqual(self.run_with(">&- 2>&-", "approve", "7").returncode, 69)
        self.assertEqual(self.run_with(">&- 2>&-", "fly").returncode, 64)

    def test_a_reader_that_had_enough_is_no_failure(self) -> None:
        for words in (["config", "show"], ["--help"], ["config", "show", "--json"]):
            reading, writing = os.pipe()
            os.close(reading)
            done = self.run_with("", *words, stdout=writing)
            os.close(writing)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_a_full_disk_is_one(self) -> None:
        done = self.run_with(">/dev/full", "config", "show")
        self.assertEqual((done.returncode, done.stderr), (1, "ironcurtain: No space left on device\n"))


class InitTests(CommandCase):
    def test_files_are_made_once_and_are_valid(self) -> None:
        self.assertEqual(self.run_command("init").exit_code, 0)
        for name in ("config.toml", "policy.toml", "mcp-servers.json"):
            self.assertEqual((self.home / name).stat().st_mode & 0o777, 0o600)
        (self.home / "config.toml").write_text("[agent]\nmax_steps = 3\n")
        self.assertIn("kept", self.run_command("init").output)
        self.assertEqual(self.json("config", "show")["agent.max_steps"]["value"], 3)
        self.assertEqual(self.run_command("policy", "check").exit_code, 0)


class ConfigTests(CommandCase):
    def test_every_value_says_where_it_came_from(self) -> None:
        self.environ["IRONCURTAIN_ESCALATION_TIMEOUT_SECONDS"] = "60"
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text('[providers.anthropic]\nkey = { env = "MY_KEY" }\n')
        self.environ["MY_KEY"] = "canary-of-a-key-that-nobody-prints"
        shown = self.json("config", "show")
        self.assertEqual(shown["escalation.timeout_seconds"]["value"], 60)
        self.assertIn("IRONCURTAIN_ESCALATION_TIMEOUT_SECONDS", shown["escalation.timeout_seconds"]["from"])
        self.assertEqual(shown["providers.anthropic.key.env"]["value"], "MY_KEY")
        self.assertNotIn("canary", self.run_command("config", "show").output)

    def test_a_provider_with_which_no_session_could_start(self) -> None:
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text('[providers.anthropic]\nhost = "https://api.example.com"\n')
        error = self.run_command("config", "show").exception
        self.assertIsInstance(error, ConfigurationError)
        self.assertIn("config.toml:2: providers.anthropic.host: ", str(error))

    def test_all_files_are_checked_and_named(self) -> None:
        self.run_command("init")
        result = self.run_command("config", "check")
        self.assertEqual((result.exit_code, result.output.count("ok ")), (0, 4), result.output)
        (self.home / "policy.toml").write_text("[[rules]]\nname = 1\n")
        (self.home / "mcp-servers.json").write_text('{"mcpServers": {\n"a": {"command": "x",\n"env": {"A=B": "x"}}}}')
        result = self.run_command("config", "check")
        self.assertEqual(result.exit_code, 78)
        self.assertIn(f"wrong  {self.home}/policy.toml:2: rules[0].name: ", result.output)
        self.assertIn(f"wrong  {self.home}/mcp-servers.json:3: mcpServers.a.env.A=B: cannot be", result.output)
        found = json.loads(self.run_command("config", "check", "--json").stdout)
        self.assertEqual([file["error"] is None for file in found], [True, False, False, True])

    def test_a_home_that_is_a_file(self) -> None:
        self.home.write_text("")
        error = self.run_command("sessions").exception
        self.assertIsInstance(error, UsageError)
        self.assertIn(f"{self.home} is not a directory", str(error))
        self.environ["IRONCURTAIN_HOME"] = f"{self.home}/below"
        error = self.run_command("sessions").exception
        self.assertIsInstance(error, UsageError)
        self.assertIn(f"{self.home}/below cannot be made: {self.home} is not a directory", str(error))


class DoctorTests(CommandCase):
    """In processes of their own, since the doctor talks with the Docker Engine over the reactor."""

    def doctor(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        ironcurtain = str(Path(sys.executable).parent / "ironcurtain")
        environ = {**os.environ, **self.environ, **environ}
        return subprocess.run([ironcurtain, "doctor", *words], env=environ, capture_output=True, text=True, check=False)

    def states(self) -> dict[str, tuple[str, str]]:
        return {f["what"]: (f["state"], f["mend"]) for f in json.loads(self.doctor("--json").stdout)}

    def test_a_fresh_machine_is_told_what_to_do(self) -> None:
        states = self.states()
        self.assertEqual(states["home"], ("hint", "Make it with: ironcurtain init"))
        self.assertEqual(states["model"], ("hint", "Set it: export ANTHROPIC_API_KEY=..."))
        self.assertEqual(self.doctor().returncode, 0)

    def test_upstream_proxy_is_named_and_tried(self) -> None:
        found = json.loads(self.doctor("--json", HTTPS_PROXY="http://me:CANARY@127.0.0.1:1", NO_PROXY="").stdout)
        (proxy,) = (f for f in found if f["what"] == "proxy")
        self.assertEqual(proxy["state"], "wrong")
        said = (
            "the proxy http://127.0.0.1:1 (environment variable HTTPS_PROXY) cannot be reached: nothing listens there"
        )
        self.assertEqual(proxy["detail"], said)

    def test_what_is_wrong_is_named_and_is_status_1(self) -> None:
        self.run_command("init")
        self.home.chmod(0o755)
        (self.home / "config.toml").write_text("max_stpes = 1\n")
        (self.home / "mcp-servers.json").write_text('{"mcpServers": {"a": {"command": "no-such-program"}}}')
        states = self.states()
        self.assertEqual(states["home"], ("wrong", f"Close it: chmod 700 {self.home}"))
        self.assertEqual(states["config.toml"][0], "wrong")
        self.assertEqual(states["MCP server a"][0], "wrong")
        self.assertEqual(self.doctor().returncode, 1)

    def test_a_home_to_which_nothing_can_be_written(self) -> None:
        self.home.mkdir(mode=0o700)
        full = ["prlimit", "--fsize=0", str(Path(sys.executable).parent / "ironcurtain")]
        for words, status in (("doctor", 1), ("init", 64)):
            environ = {**os.environ, **self.environ}
            done = subprocess.run([*full, words], env=environ, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f"cannot write to the home {self.home}: File too large", done.stdout + done.stderr)

    def test_servers_behind_http_are_named_without_their_keys(self) -> None:
        self.home.mkdir(mode=0o700)
        far = {"url": "https://tickets.example.org:8443/mcp?key=hidden", "headers": {"X-Key": "hidden"}}
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"far": far}}))
        told = self.doctor().stdout
        self.assertIn("by HTTP at tickets.example.org:8443", told)
        self.assertNotIn("hidden", told)

    def test_missing_docker_is_a_hint(self) -> None:
        done = self.doctor(DOCKER_HOST=f"unix://{self.person}/docker.sock")
        self.assertIn("no agent can run in a container", done.stdout)
        self.assertIn("apt-get install docker.io", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_sandbox_of_each_kind_is_named_with_its_limits(self) -> None:
        for kind, problem in programs.problems(Sandbox(account=Account(61184, 61184).switched)):
            done = self.doctor(IRONCURTAIN_SANDBOX_KIND=kind.value)
            if problem is None:
                self.assertIn(f"sandbox: {promises.NAMES[kind]} work", done.stdout)
                self.assertEqual("They do not hide names" in done.stdout, kind is Kind.LANDLOCK, done.stdout)
                used = bubblewrap.tried(Account(61184, 61184).switched).program if kind is Kind.BUBBLEWRAP else None
                follows = used is not None and not used.safe()
                self.assertEqual("where it could, it runs inside another" in done.stdout, follows, done.stdout)

    def test_without_any_sandbox_is_wrong_with_the_reason(self) -> None:
        done = self.doctor(IRONCURTAIN_SANDBOX_KIND="container", DOCKER_HOST="unix:///nowhere/docker.sock")
        self.assertIn("sandbox: none can be made: there is no Docker Engine at unix:///nowhere", done.stdout)
        self.assertEqual(done.returncode, 1, done.stdout)
        if programs.unavailable(Account(61184, 61184).switched, Kind.BUBBLEWRAP) is None:
            self.assertIn("bubblewrap can make them: remove sandbox.kind from config.toml", done.stdout)


class NothingThereTests(CommandCase):
    def test_sessions_and_escalations_of_an_empty_home(self) -> None:
        ironcurtain = str(Path(sys.executable).parent / "ironcurtain")
        for words, status, said in (
            (["sessions"], 0, "No sessions."),
            (["escalations"], 0, "No call waits"),
            (["approve", "7"], 69, "there is no escalation 7"),
            (["stop", "7"], 69, "there is no running session 7"),
            (["logs"], 69, "there is no session yet"),
        ):
            environ = {**os.environ, **self.environ}
            done = subprocess.run([ironcurtain, *words], env=environ, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stdout + done.stderr)


class LogTests(CommandCase):
    def test_lines_of_a_log_are_escaped(self) -> None:
        """One of another host's session was written by whoever runs that host."""
        session = self.home / "sessions" / "abc"
        session.mkdir(parents=True)
        (session / "session.json").write_text('{"id": "abc", "number": 1}')
        (session / "session.log").write_bytes(b"one\ttwo\n\x1b]0;x\x07\xff\n")
        result = self.run_command("logs", "1")
        self.assertEqual(result.output, "one\ttwo\n\\x1b]0;x\\x07\\xff\n", result.output)

    def test_log_of_a_session_whose_files_were_removed(self) -> None:
        session = self.home / "sessions" / "abc"
        session.mkdir(parents=True)
        (session / "session.json").write_text('{"id": "abc", "number": 1}')
        result = self.run_command("logs", "1")
        self.assertEqual(str(result.exception), "session 1: its log was removed as that of an old session")
