"""The product in the environment of a login shell: it answers as in an empty one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tests.cli.cases import ProductCase
from tests.commands import READ_AT_START
from tests.login import login_environ
from tests.product import BARE

READING = ("audit show last", "config show", "policy check")
"""Commands whose answers are the same however often they are asked."""


class LoginEnvironmentTests(ProductCase):
    def answers(self) -> dict[str, tuple[int, str]]:
        """:returns: status and output of some commands, without times and ids."""
        code = "print(filesystem.read_text_file('file.txt'))\nprint(filesystem.list_directory('.'))"
        script = self.product.script({"text": "I look.", "code": code}, {"text": "done"})
        (self.product.project / "file.txt").write_text(f"in {self.product.project}\n")
        commands = {
            "start": ("start", "--workspace", str(self.product.project), "--backend", script, "look"),
            "config": ("config", "check"),
            "policy": ("policy", "check"),
            "tools": ("tools",),
            "logs": ("audit", "show", "last", "--json"),
        }
        found = {}
        for name, words in commands.items():
            done = self.product.run(*words)
            text = re.sub(r'"signature":"[^"]*"|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d[\d:.TZ-]*', "N", done.stdout)
            # Records that come after some seconds, or from servers that start at the same time, are in any order.
            lines = sorted(line for line in text.splitlines() if '"kind":"checkpoint"' not in line)
            found[name] = (done.returncode, "\n".join(lines))
        return found

    def test_answers_are_those_of_an_empty_environment(self) -> None:
        self.product.run("init")
        backend = self.product.script({"text": "done"})
        self.product.run("start", "--backend", backend, "look")  # the first session pins the tools
        found = self.answers()
        self.assertEqual(found["start"][0], 0, found)
        self.assertNotIn("[redacted]", json.dumps(found))
        self.product.environ = self.bare()
        self.assertEqual(self.answers(), found)

    def bare(self) -> dict[str, str]:
        """:returns: the variables that no command can do without."""
        return {name: self.product.environ[name] for name in BARE if name in self.product.environ}

    def said(self, more: Mapping[str, str]) -> list[tuple[int, str, str]]:
        """:returns: status and both outputs of some commands that change nothing, with these variables besides."""
        self.product.environ = {**self.few, **more}
        started = [self.product.start(*words.split()) for words in READING]
        outputs = [command.communicate() for command in started]
        return [(command.wait(), *output) for command, output in zip(started, outputs, strict=True)]

    def test_no_variable_alone_changes_an_answer(self) -> None:
        self.product.run("init")
        code = "print(filesystem.read_text_file('~/secret.txt'))"
        script = self.product.script({"text": "I look.", "code": code}, {"text": "done"})
        self.product.run("start", "--backend", script, "look")
        every = login_environ(self.product.person / "my files")
        # A process reads its locale when it starts; all others have one that the fork server has, too.
        self.few = {**self.bare(), **{name: every[name] for name in every if name.startswith(READ_AT_START)}}
        expected = self.said({})
        self.assertEqual([status for status, _, _ in expected], [0] * len(READING), expected)
        self.assertIn("secret.txt", str(expected))
        wrong = {name for name in every.keys() - BARE if self.said({name: every[name]}) != expected}
        for name in [*self.few.keys() - BARE]:
            value = self.few.pop(name)
            if self.said({}) != expected:
                wrong.add(f"without {name}")
            self.few[name] = value
        self.assertEqual(wrong, set())
