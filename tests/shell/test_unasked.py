"""What may run in the user's shell without a question."""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Risk
from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.gate import CommandGate
from tests.commandline.test_plain import SHELLS
from tests.product import LIMIT
from tests.programs import program
from tests.shell.dodges import examples
from tests.shell.test_gate import HERE, HOME
from tests.shell.unasked import any_line

READING, DOING = examples("reading"), examples("doing")
"""
Commands that read, in all three shells, and may run unasked by patterns for their names; and such as write, run or
change something, or whose text does not show that they do not.
"""

BY_PATTERNS: dict[str, Any] = {"shell": {"allow_patterns": examples("reading-patterns")}}
BY_MODE: dict[str, Any] = {"shell": {"mode": "allow"}, "filesystem": {"read": ["/**"]}}


def gate(tables: dict[str, Any], shell: str, home: str = HOME, directory: str = HERE) -> CommandGate:
    """:returns: a gate for a shell, with these tables."""
    return CommandGate(read_approval(tables, "policy.toml", home), (), home, os.path.realpath, directory, shell)


BY_SHELL = {shell: gate(BY_PATTERNS, shell) for shell in SHELLS}


class PatternTests(SynchronousTestCase):
    """Patterns with wildcards for the names of all commands allow what only reads."""

    def decisions(self, command: str, tables: dict[str, Any] = BY_PATTERNS) -> set[Decision]:
        return {gate(tables, shell).judged(command, HERE).decision for shell in SHELLS}

    def test_what_reads_is_allowed(self) -> None:
        self.assertEqual([each for each in READING if self.decisions(each) != {Decision.ALLOW}], [])

    def test_what_does_more_is_asked(self) -> None:
        self.assertEqual([each for each in DOING if self.decisions(each) != {Decision.ESCALATE}], [])

    def test_what_does_more_is_not_shown_as_reading(self) -> None:
        self.assertEqual([each for each in DOING if BY_SHELL["zsh"].risk(each, HERE) is Risk.READ], ["cat $V"])

    @given(
        st.lists(st.sampled_from((*READING, *READING, *DOING)), min_size=1, max_size=4),
        st.sampled_from((" ; ", ";", " && ", " || ", " | ", "\n")),
        st.sampled_from(tuple(SHELLS)),
    )
    def test_a_line_is_allowed_if_all_of_it_reads(self, commands: list[str], joint: str, shell: str) -> None:
        line = joint.join(commands)
        decision = BY_SHELL[shell].judged(line, HERE).decision
        if set(commands) & set(DOING):
            self.assertIs(decision, Decision.ESCALATE)
        elif "cd d" not in commands and not (re.search(r"'!\S", line) and re.search(r'["\n\\]', line)):
            self.assertIs(decision, Decision.ALLOW)

    def test_what_an_exact_pattern_says_is_allowed_whole(self) -> None:
        for command in ("git push", "sort -o b a", "sudo systemctl restart x", "find . -delete", "./build.sh", "rm a"):
            self.assertEqual(self.decisions(command, {"shell": {"allow_patterns": [command]}}), {Decision.ALLOW})
            for more in (f"{command} x", f"{command} > x", f"{command}; touch x", f"env {command}", f"{command} *"):
                self.assertEqual(
                    self.decisions(more, {"shell": {"allow_patterns": [command]}}), {Decision.ESCALATE}, more
                )

    def test_a_pattern_for_a_program_that_is_not_known_allows_what_it_says(self) -> None:
        tables = {"shell": {"allow_patterns": ["make *", "./x *", "npm run *", "docker *"]}}
        for command in ("make -f x SHELL=y", "./x --output=y", "npm run x -- -y", "make $V", "docker ps"):
            self.assertEqual(self.decisions(command, tables), {Decision.ALLOW}, command)
        for command in ("make x > y", "make x; y", "make x | sh", "env make", "npm install x", "docker run x"):
            self.assertEqual(self.decisions(command, tables), {Decision.ESCALATE}, command)

    def test_writes_are_for_the_table_of_files(self) -> None:
        tables = {
            "shell": {"allow_patterns": ["sort *", "git *", "touch *", "kill *"]},
            "filesystem": {"write": ["$CWD/**"]},
        }
        for command in ("sort a > b", "touch a", "git add a", "git commit -m x"):
            self.assertEqual(self.decisions(command, tables), {Decision.ALLOW}, command)
        for command in ("sort -o b a", "touch ../a", "git push", "kill 1", "git diff --output=b"):
            self.assertEqual(self.decisions(command, tables), {Decision.ESCALATE}, command)


class ChangedShellTests(SynchronousTestCase):
    """:meth:`CommandGate.ran`"""

    def test_after_a_line_that_may_change_the_shell_names_are_asked_about(self) -> None:
        for shell in SHELLS:
            for command in (
                "functions[ls]='rm victim'",
                "alias ls=rm",
                "PATH=.",
                "read PATH",
                "source s",
                "f() { ls; }",
            ):
                found = gate(BY_PATTERNS, shell)
                self.assertIs(found.judged("ls -l", HERE).decision, Decision.ALLOW)
                found.ran(command)
                verdict = found.judged("ls -l", HERE)
                self.assertEqual((verdict.decision, verdict.rule), (Decision.ESCALATE, "changed-shell"), command)
                self.assertIn(repr(command), verdict.reason)
                self.assertIs(found.judged("rm -rf /", HERE).decision, Decision.ESCALATE)

    def test_what_cannot_change_the_shell_changes_nothing(self) -> None:
        found = gate(BY_PATTERNS, "zsh")
        for command in (*READING, "rm x", "make > y", "sh -c 'x=1; alias y=z'", "./x", "env X=1 y", "sudo tee z"):
            found.ran(command)
        self.assertIs(found.judged("ls -l", HERE).decision, Decision.ALLOW)


class CanaryTests(SynchronousTestCase):
    """Lines at random: those that are allowed run in a directory with files, which must stay as they are."""

    def test_what_is_allowed_touches_nothing(self) -> None:
        program("git")
        choose = random.Random(27)
        cases = [(BY_PATTERNS, (*DOING, *READING)), (BY_MODE, DOING)]
        for shell, (tables, known) in ((shell, case) for shell in SHELLS for case in cases):
            program(shell)
            with tempfile.TemporaryDirectory(prefix="ic-") as home:
                directory = Path(home, "work")
                self._fill(directory)
                judge = gate(tables, shell, home, str(directory))
                allowed = [
                    line
                    for line in (*known, *(any_line(choose) for _ in range(80)))
                    if judge.judged(line, str(directory)).decision is Decision.ALLOW
                ]
                self.assertGreater(len(allowed), 8)
                before = self._state(directory)
                for line in allowed:
                    self._type(SHELLS[shell], line, directory)
                    self.assertEqual(self._state(directory), before, (shell, line))

    def _fill(self, directory: Path) -> None:
        for name, text in (
            ("victim", "keep\n"), ("a", "one 1\ntwo 2\n"), ("b", "x\n"), ("d/c", "y\n"), ("-ovictim", ""),
            ("--output=victim", ""), ("-delete", ""), ("s", "rm victim\n"),
        ):  # fmt: skip
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text)
        (directory / "s").chmod(0o755)
        commit = (
            "git init -q; git add -A; git -c user.name=x -c user.email=x@x commit -qm x; tar cf t.tar a; echo z >> a"
        )
        self._type(("sh",), commit, directory)

    def _type(self, shell: tuple[str, ...], line: str, directory: Path) -> None:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(directory.parent), "V": "-o victim -exec rm victim ;"}
        subprocess.run(
            shell, cwd=directory, env={**environ, "GIT_PAGER": "cat", "PAGER": "cat"}, input=f"{line}\n", text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT, check=False, start_new_session=True,
        )  # fmt: skip

    def _state(self, directory: Path) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }
