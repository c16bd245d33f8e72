from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.sections import Budget
from ironcurtain.watchers.config import load_watchers, read_watchers
from ironcurtain.watchers.model import Ask, Kind, Watcher
from tests.audit.doubles import scratch

ENVIRON = {"HOME": "/home/ada"}
FILES = 'trigger = "file_change"\npath = "~/src"\ninstruction = "Test"'


def read(*lines: str, name: str = "tests") -> tuple[Watcher, ...]:
    """:returns: the watchers of a file with one table."""
    text = "\n".join(("version = 1", f"[watchers.{name}]", *lines))
    return read_watchers(text, "watchers.toml", ENVIRON, lambda: ["builtin", "codex"])


class ReadTests(SynchronousTestCase):
    def refused(self, *lines: str, name: str = "tests") -> str:
        return str(self.assertRaises(ConfigurationError, lambda: read(*lines, name=name)))

    def test_every_setting(self) -> None:
        (found,) = read(
            FILES, 'pattern = "**/*.py"', 'agent = "codex"', 'workspace = "~/src"', 'debounce = "5s"',
            "max_per_hour = 3", "budget = { cost = 0.5 }", 'ask = "console"',
        )  # fmt: skip
        expected = Watcher(
            name="tests", trigger=Kind.FILE_CHANGE, instruction="Test", path=Path("/home/ada/src"), pattern="**/*.py",
            agent="codex", workspace=Path("/home/ada/src"), debounce=5.0, max_per_hour=3, budget=Budget(cost=0.5),
            ask=Ask.CONSOLE,
        )  # fmt: skip
        self.assertEqual(found, expected)
        self.assertEqual(found.principal, "watcher:tests")

    def test_schedules(self) -> None:
        (found,) = read('trigger = "schedule"', 'every = "10m"', 'instruction = "x"')
        self.assertEqual(found.every, 600.0)
        (found,) = read('trigger = "schedule"', 'cron = "0 9 * * 1-5"', 'instruction = "x"')
        self.assertEqual(found.cron, "0 9 * * 1-5")

    def test_errors_name_file_line_and_field(self) -> None:
        cases = {
            ('trigger = "file_change"', 'instruction = "x"'): "path: is missing",
            ('trigger = "schedule"', 'instruction = "x"'): "give either every",
            ('trigger = "schedule"', 'instruction = "x"', 'every = "1m"', 'cron = "* * * * *"'): "give either every",
            ('trigger = "schedule"', 'instruction = "x"', 'cron = "61 * * * *"'): "cron: minute '61'",
            ('trigger = "schedule"', 'instruction = "x"', 'every = "1s"'): "every: must be from 10s to 366d, not 1s",
            (FILES, 'cron = "* * * * *"'): 'cron: does not go with trigger = "file_change"',
            (FILES, 'agent = "nobody"'): "there is no agent 'nobody': choose one of builtin, codex, shell",
            (FILES, 'agent = "shell"', 'ask = "policy"'): "ask: does not go with agent",
            (FILES, "max_per_hour = 0"): "max_per_hour: must be at least 1",
            (FILES, 'debounce = "soon"'): "debounce: 'soon' is no length of time",
            (FILES.replace("file_change", "moon"),): 'trigger: must be one of "file_change", "screen_change"',
            (FILES, 'ask = "me"'): 'ask: must be one of "policy", "console"',
            (FILES.replace("Test", "x" * 20_001),): "instruction: must have at most 20,000 characters",
            (FILES.replace("~/src", "/x\\u0000"),): "path: has a character that no path can have",
            (FILES, 'debounce = "2h"'): "debounce: must be from 0s to 1h, not 2h",
            (FILES, 'colour = "red"'): "colour: there is no such setting",
            (FILES, 'workspace = "src"'): "workspace: must begin with / or ~/",
            ('trigger = "stdin"', 'agent = "shell"', 'instruction = "x"'): "agent: a shell does not read",
            ('trigger = "stdin"', 'instruction = " "'): "instruction: is empty",
            ('trigger = "stdin"', 'on = "any"', 'instruction = "x"'): "on: does not go with",
            (FILES, 'workspace = "~/src"', 'labels = ["gpu"]'): "labels: does not go with workspace",
            (FILES, 'agent = "shell"', 'on = "any"'): "on: does not go with",
            (FILES, 'on = "build-3"', 'labels = ["gpu"]'): "labels: choose the machine",
            (FILES, 'labels = ["a b"]'): "labels",
        }
        for lines, words in cases.items():
            message = self.refused(*lines)
            self.assertIn(words, message)
            self.assertRegex(message, r"^watchers.toml:\d+: watchers\.tests\.")

    def test_labels_mean_any_host(self) -> None:
        text = f'[watchers.tests]\n{FILES}\nlabels = ["gpu"]'
        (made,) = read_watchers(text, "watchers.toml", ENVIRON, lambda: ["builtin"])
        self.assertEqual((made.on, made.labels), ("any", ("gpu",)))

    def test_names_are_safe_in_paths(self) -> None:
        for name in ('"../x"', '"A"', '"-x"', '"x\\n"', f'"{"x" * 41}"'):
            self.refused(FILES, name=name)

    def test_newer_version_is_refused(self) -> None:
        self.assertRaises(ConfigurationError, read_watchers, "version = 2", "w", ENVIRON, list)


class LoadTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self) / "watchers.toml"

    def load(self) -> int:
        return len(load_watchers(self.path, ENVIRON, lambda: ["builtin"]))

    def test_without_a_file_there_are_none(self) -> None:
        self.assertEqual(self.load(), 0)

    def test_file_that_others_could_write_is_refused(self) -> None:
        self.path.write_text(f"[watchers.tests]\n{FILES}")
        self.path.chmod(0o600)
        self.assertEqual(self.load(), 1)
        self.path.chmod(0o620)
        self.assertIn("chmod 600", str(self.assertRaises(ConfigurationError, self.load)))

    def test_link_is_refused(self) -> None:
        os.symlink("/etc/passwd", self.path)
        self.assertRaises(ConfigurationError, self.load)
