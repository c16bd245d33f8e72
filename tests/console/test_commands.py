"""What ``/start`` starts."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.actions import requested
from ironcurtain.errors import UsageError
from ironcurtain.session.model import SessionRequest


class StartTests(SynchronousTestCase):
    """Options stand before the task."""

    def test_options_and_task(self) -> None:
        self.assertEqual(requested(""), SessionRequest("", "", None))
        self.assertEqual(requested("don't stop  here"), SessionRequest("", "don't stop  here", None))
        self.assertEqual(requested("--workspace /x --agent  codex go on"), SessionRequest("codex", "go on", Path("/x")))
        self.assertEqual(requested("--workspace ~").workspace, Path.home())

    def test_what_is_wrong_says_what_to_type(self) -> None:
        wrong = {
            "--agent": "--agent needs a value",
            "--pty go on": "/start has no option --pty: there are --agent and --workspace, before TASK",
            "--workspace x": "begin the workspace with / or ~/",
            "--workspace ~ada/x": "begin the workspace with / or ~/",
            "--workspace .": "begin the workspace with / or ~/",
        }
        for text, why in wrong.items():
            with self.assertRaisesRegex(UsageError, why):
                requested(text)
