"""``ironcurtain login``, as a person uses it, and what ``doctor`` and ``config check`` say of accounts."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from ironcurtain.accounts.kept import KeptLogins
from ironcurtain.accounts.login_files import read_login
from tests.accounts.samples import CANARY, claude_file, codex_file
from tests.cli.test_commands import CommandCase
from tests.product import LIMIT
from tests.terminal.ptys import PtyCase

TOKEN = f"sk-ant-oat01-{CANARY}"


class LoginCase(CommandCase):
    """Runs the program, since it hides the memory of its process."""

    def program(self, *words: str, typed: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        """:returns: how it ended; it has printed no token."""
        path = str(Path(sys.executable).parent / "ironcurtain")
        done = subprocess.run(
            [path, *words],
            input=typed,
            env={**os.environ, **self.environ, **environ},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        self.assertNotIn(CANARY, done.stdout + done.stderr)
        return done

    def keep(self) -> None:
        """Keep a login at ChatGPT that is renewed."""
        file = KeptLogins(self.home / "accounts").of("chatgpt")
        self.home.mkdir(mode=0o700, exist_ok=True)
        file.lock()
        file.write(read_login("chatgpt", "x", codex_file()))


class ListTests(LoginCase):
    def test_home_without_logins_says_how_to_log_in(self) -> None:
        done = self.program("login")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("ironcurtain login claude", done.stdout)
        self.assertFalse(self.home.exists())

    def test_login_of_a_persons_own_program_is_offered_and_not_used(self) -> None:
        file = self.person / ".codex" / "auth.json"
        file.parent.mkdir()
        file.write_bytes(codex_file())
        file.chmod(0o600)
        told = self.program("login").stdout
        self.assertIn("There is no account", told)
        self.assertIn("~/.codex/auth.json has a login of your own program", told)
        self.assertIn('[accounts.chatgpt] source = "cli"', told)
        self.assertEqual(self.program("login", "--json").stdout.strip(), "[]")

    def test_list_says_whose_accounts_there_are_and_until_when(self) -> None:
        self.keep()
        (self.home / "config.toml").write_text('[accounts.claude]\nsource = "cli"\n')
        file = self.person / ".claude" / ".credentials.json"
        file.parent.mkdir()
        file.write_bytes(claude_file(expiresAt=1_000_000_000_000))
        file.chmod(0o600)
        told = self.program("login").stdout
        self.assertRegex(
            told, r"claude +Claude subscription \(max\) +2001-09-0\d \d\d:\d\d +~/.claude/.credentials.json"
        )
        self.assertRegex(told, r"chatgpt +ChatGPT plan \(plus\) of ada@example.com +renewed +ironcurtain login chatgpt")
        self.assertIn("claude: it has expired: start claude", told)
        listed = json.loads(self.program("login", "--json").stdout)
        self.assertEqual([(each["name"], each["renewed"]) for each in listed], [("claude", False), ("chatgpt", True)])
        self.assertEqual((listed[0]["expires"], listed[1]["problem"]), (1_000_000_000.0, None))
        noted = self.program("config", "check").stdout
        self.assertIn("note   config.toml: account claude: ~/.claude/.credentials.json: it has expired", noted)
        doctor = {each["what"]: each for each in json.loads(self.program("doctor", "--json").stdout)}
        self.assertEqual(doctor["account claude"]["state"], "wrong")
        self.assertEqual(doctor["account chatgpt"]["state"], "ok")

    def test_two_accounts_ask_for_a_choice(self) -> None:
        self.program("login", "claude", "--token", typed=f"{TOKEN}\n")
        done = self.program("login", CLAUDE_CODE_OAUTH_TOKEN=TOKEN)
        self.assertIn("claude: there are two: ironcurtain login claude and environment variable", done.stdout)


class TokenTests(LoginCase):
    def test_pasted_token_is_kept_for_the_owner_only_and_logout_removes_it(self) -> None:
        done = self.program("login", "claude", "--token", typed=f"  {TOKEN}\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        kept = self.home / "accounts" / "claude.json"
        self.assertEqual(json.loads(kept.read_text())["access"], TOKEN)
        self.assertEqual([stat.S_IMODE(path.stat().st_mode) for path in (kept, kept.parent)], [0o600, 0o700])
        self.assertIn("Logged out of claude.", self.program("logout", "claude").stdout)
        self.assertFalse(kept.exists())
        self.assertIn("There is no login claude.", self.program("logout", "claude").stdout)

    def test_what_is_no_such_token_is_refused_and_nothing_is_kept(self) -> None:
        for typed, words in (
            (f"sk-ant-api03-{CANARY}\n", "is an API key"),
            (f"sk-ant-ort01-{CANARY}\n", "no token of claude setup-token"),
            (f"{TOKEN} {CANARY}\n", "no token of claude setup-token"),
            ("", "no token of claude setup-token"),
        ):
            done = self.program("login", "claude", "--token", typed=typed)
            self.assertEqual((done.returncode, done.stdout), (64, ""))
            self.assertIn(words, done.stderr)
        self.assertFalse((self.home / "accounts").exists())

    def test_only_claude_has_tokens_that_last(self) -> None:
        done = self.program("login", "chatgpt", "--token", typed="x\n")
        self.assertEqual(done.returncode, 64)
        self.assertIn("run ironcurtain login chatgpt", done.stderr)
        self.assertEqual(self.program("login", "--token").returncode, 64)


class ProgramTests(LoginCase):
    def test_login_needs_a_terminal(self) -> None:
        done = self.program("login", "claude")
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn("this needs a terminal", done.stderr)


class NoDockerTests(PtyCase):
    async def test_other_ways_are_named_where_there_is_no_docker(self) -> None:
        home = tempfile.mkdtemp(prefix="ic-")
        self.addCleanup(shutil.rmtree, home)
        program = Path(sys.executable).parent / "ironcurtain"
        environ = f"HOME={home} IRONCURTAIN_HOME={home}/h DOCKER_HOST=unix:///nowhere.sock COLUMNS=1000"
        self.shell(f"env {environ} {program} login claude; echo status $?")
        await self.watcher.shows(b"status ")
        said = " ".join(self.watcher.seen.decode().split())
        self.assertIn("no Docker Engine answers at unix:///nowhere.sock", said)
        self.assertNotIn("Open the address", said)
        self.assertIn('name your own program\'s login ([accounts.claude] source = "cli" in config.toml)', said)
        self.assertIn("keep a token: ironcurtain login claude --token status 69", said)
        await self.pty.done
