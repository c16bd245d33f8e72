"""Tests of ironcurtain.cli.mcp_trial."""

from __future__ import annotations

import subprocess
import sys
import traceback

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.mcp_trial import reasons
from tests.programs import program


class ReasonsTests(SynchronousTestCase):
    """What is left of a standard error."""

    def test_exceptions_of_python_keep_their_message_only(self) -> None:
        script = "def start():\n    server.list()\nclass Server: pass\nserver = Server()\nstart()\n"
        for line in (["-c", script], ["-c", f"exec({script!r}, {{}})"], ["-c", f"eval({'1 + a'!r})"]):
            done = subprocess.run([sys.executable, *line], capture_output=True, text=True, check=False)
            last = done.stderr.splitlines()[-1]
            self.assertEqual(reasons(done.stderr.splitlines()), [last])

    def test_groups_of_exceptions_keep_all_messages(self) -> None:
        with self.assertRaises(ExceptionGroup) as caught:
            try:
                dict[str, str]()["key"]
            except KeyError as e:
                raise ExceptionGroup("tasks failed", [e]) from None
        lines = "".join(traceback.format_exception(caught.exception)).splitlines()
        left = [line.strip(" |") for line in reasons(lines)]
        self.assertEqual(left, ["ExceptionGroup: tasks failed (1 sub-exception)", "KeyError: 'key'"])

    def test_errors_of_node_keep_their_message(self) -> None:
        done = subprocess.run(
            [program("node"), "-e", "throw new Error('no database')"], capture_output=True, text=True, check=False
        )
        left = reasons(done.stderr.splitlines())
        self.assertIn("Error: no database", left)
        self.assertFalse([line for line in left if line.strip().startswith("at ")], left)

    def test_other_lines_stay_also_indented_ones(self) -> None:
        lines = ["error: Request failed", "  Caused by: no network", "Filed 3 items", "at least one host is needed"]
        self.assertEqual(reasons(lines), lines)
