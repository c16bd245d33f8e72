"""Completion by real shells, in a home with sessions and escalations as processes leave them there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli import COMMANDS
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.process.identity import identify
from tests.product import LIMIT
from tests.programs import program

BASH = """
eval "$(ironcurtain completion bash)"
COMP_WORDS=({words}) COMP_CWORD={last}
_ironcurtain_completion ironcurtain
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

ZSH = """
compdef() {{ }}
compadd() {{ print -l -- $completions }}
_describe() {{ print -l -- ${{completions_with_descriptions%%:*}} }}
eval "$(ironcurtain completion zsh)"
words=({words}) CURRENT=$(({last} + 1))
_ironcurtain_completion
"""

FISH = """
ironcurtain completion fish | source
complete --do-complete "{line}" | string replace --regex '\\t.*' ''
"""


class CompletionTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="ic-")
        self.addCleanup(directory.cleanup)
        self.home = Home(Path(directory.name, "home"), Path(directory.name, "run"))
        self.home.prepare()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environ = {"PATH": path, "HOME": directory.name, "IRONCURTAIN_HOME": str(self.home.path)}
        for number in (3, 12):
            self.add_session(number, "session: of all sorts")
        self.add_ended(2)

    def add_session(self, number: int, label: str) -> None:
        """Leave in the home what a process leaves whose session has one escalation."""
        owner = identify()
        session = self.home.session(f"{number:08}-feed")
        session.escalations.mkdir(parents=True)
        request = {"number": number * 10, "serverName": "git", "toolName": "git_push"}
        (session.escalations / f"request-{number}.json").write_bytes(msgspec.json.encode(request))
        (session.escalations / "request-broken.json").write_text("{")
        entry = SessionEntry(
            session_id=session.directory.name,
            escalation_dir=str(session.escalations),
            label=label,
            started_at="2026-01-01T00:00:00Z",
            pid=owner.pid,
            pid_start_time=owner.start_time,
            boot_id=owner.boot_id,
            number=number,
        )
        SessionRegistry(self.home.registry).add(entry)
        self.add_ended(number)

    def add_ended(self, number: int) -> None:
        session = self.home.session(f"{number:08}-feed")
        session.directory.mkdir(exist_ok=True)
        session.snapshot.write_bytes(msgspec.json.encode({"id": session.directory.name, "number": number}))

    def run_shell(self, shell: str, script: str) -> list[str]:
        words = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
        done = subprocess.run(
            [program(shell), *words, "-c", script],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def bash(self, *words: str) -> list[str]:
        """:returns: what bash offers for the last word."""
        quoted = " ".join(f"'{word}'" for word in ("ironcurtain", *words))
        return self.run_shell("bash", BASH.format(words=quoted, last=len(words)))

    def test_commands_and_options(self) -> None:
        self.assertEqual(self.bash("esc"), ["escalations", "escalation-listener"])
        self.assertEqual(set(self.bash("")), {*COMMANDS})
        self.assertEqual(self.bash("start", "--list"), ["--list-agents"])
        self.assertEqual(self.bash("loop", "--", "./my"), [])

    def test_sessions(self) -> None:
        """Those that run where only these can be meant; an id for whoever has begun to type it."""
        self.assertEqual(self.bash("attach", ""), ["last", "12", "3"])
        self.assertEqual(self.bash("attach", "1"), ["12"])
        self.assertEqual(self.bash("stop", "00000003"), ["00000003-feed"])
        self.assertEqual(self.bash("audit", "show", ""), ["last", "12", "3", "2"])
        self.assertEqual(self.bash("start", "--resume", ""), ["last", "12", "3", "2"])

    def test_escalations(self) -> None:
        self.assertEqual(self.bash("approve", ""), ["30", "120"])
        self.assertEqual(self.bash("escalations", "show", "12"), ["120"])

    def test_agents(self) -> None:
        self.assertEqual(self.bash("start", "--agent", "b"), ["builtin"])
        for words in (("loop", "--agent", ""), ("images", "build", "")):
            self.assertEqual(self.bash(*words), ["claude-code", "codex", "gemini", "goose", "opencode"])
        self.assertIn("claude-code", self.bash("images", "build", "c"))

    def test_zsh(self) -> None:
        words = "ironcurtain attach ''"
        self.assertEqual(self.run_shell("zsh", ZSH.format(words=words, last=2)), ["last", "12", "3"])

    def test_fish(self) -> None:
        offered = self.run_shell("fish", FISH.format(line="ironcurtain attach "))
        self.assertEqual(sorted(offered), ["12", "3", "last"])

    def test_a_home_that_cannot_be_read_gives_nothing_and_no_word(self) -> None:
        shutil.rmtree(self.home.path)
        self.assertEqual(self.bash("attach", ""), ["last"])
        self.home.path.write_text("")
        self.assertEqual(self.bash("attach", ""), ["last"])
        self.assertEqual(self.bash("approve", ""), [])
