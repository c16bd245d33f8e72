"""Programs are started in other directories without a copy of this process."""

from __future__ import annotations

import ast
import os
import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.directory import in_directory
from tests.test_rules import modules

PLACE, TERMINAL = 4, "usePTY"
"""Position of the directory among the parameters of ``spawnProcess``, and what it always forks for."""


def forks(path: Path) -> list[int]:
    """:returns: the lines of a module where Twisted is to change to a directory that ``in_directory`` did not see."""
    if "spawnProcess" not in (source := path.read_text()):
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "spawnProcess"
        if all(keyword.arg != TERMINAL for keyword in call.keywords)
        for place in call.args[PLACE : PLACE + 1]
        if not (isinstance(place, ast.Name) and place.id in ("place", "directory"))
    ]


class DirectoryTests(SynchronousTestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.top = Path(made.name)

    def started(self, directory: str, line: list[str], environment: dict[str, str]) -> list[str]:
        """:returns: the lines that a program printed."""
        command, place = in_directory(directory, line)
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def test_program_runs_in_the_directory_with_its_arguments(self) -> None:
        place = self.top / "-a $HOME"
        place.mkdir()
        said = self.started(str(place), ["/bin/sh", "-c", 'pwd; echo "$@"', "sh", "* b", "$c"], {})
        self.assertEqual(said, [os.path.realpath(place), "* b $c"])

    def test_program_has_each_variable_unchanged(self) -> None:
        environment = {"a.b": "1", "npm_config_//host/:_auth": "x", "IFS": ",", "UID": "5", "OLDPWD": "/here", "-": ""}
        said = self.started("/", ["/usr/bin/env"], environment)
        self.assertEqual(sorted(said), sorted(f"{name}={value}" for name, value in environment.items()))

    def test_program_whose_path_reads_like_a_variable_runs(self) -> None:
        program = self.top / "a=b"
        program.symlink_to("/bin/pwd")
        self.assertEqual(self.started("/", [str(program)], {}), ["/"])

    def test_program_does_not_run_where_there_is_no_such_directory(self) -> None:
        with self.assertRaises((subprocess.CalledProcessError, FileNotFoundError)):
            self.started("/nowhere", ["/bin/echo", "ran"], {})

    def test_nothing_is_copied_here(self) -> None:
        self.assertIsNone(in_directory("/", ["/bin/pwd"])[1])

    def test_twisted_is_never_asked_to_change_the_directory_elsewhere(self) -> None:
        self.assertEqual({str(path): lines for path in modules() if (lines := forks(path))}, {})
