"""Programs are started in other directories without a copy of this process."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.directory import in_directory
from tests.test_rules import modules

PLACE, TERMINAL = 4, "usePTY"
"""Position of the directory among the parameters of ``spawnProcess``, and what it always forks for."""


def forks(path: Path) -> list[int]:
    """:returns: the lines of a module where Twisted is to change the directory of a program, for which it forks."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "spawnProcess"
        if len(call.args) > PLACE or any(keyword.arg == "path" for keyword in call.keywords)
        if all(keyword.arg != TERMINAL for keyword in call.keywords)
    ]


class DirectoryTests(SynchronousTestCase):
    def test_program_runs_in_the_directory_with_its_arguments_and_environment(self) -> None:
        place = Path(self.mktemp()).absolute()
        (place / "-a $HOME").mkdir(parents=True)
        line = in_directory(str(place / "-a $HOME"), ["/bin/sh", "-c", 'pwd; echo "$@"; env', "sh", "* b", "$c"])
        environment = {"A": "b", "OLDPWD": "/here"}
        said = subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(said[:2], [os.path.realpath(place / "-a $HOME"), "* b $c"])
        self.assertIn("A=b", said)
        self.assertFalse([line for line in said if line.startswith("OLDPWD=")])

    def test_program_does_not_run_where_there_is_no_such_directory(self) -> None:
        done = subprocess.run(
            in_directory("/nowhere", ["/bin/echo", "ran"]), capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode != 0, done.stdout), (True, ""))
        self.assertIn("/nowhere", done.stderr)

    def test_twisted_is_never_asked_to_change_the_directory(self) -> None:
        self.assertEqual({str(path): lines for path in modules() if (lines := forks(path))}, {})
