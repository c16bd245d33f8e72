"""The product in the environment of a login shell: it answers as in an empty one."""

from __future__ import annotations

import json
import re

from tests.cli.cases import ProductCase
from tests.product import BARE


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
            "tools": ("tools", "list"),
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
        self.product.environ = {name: self.product.environ[name] for name in BARE if name in self.product.environ}
        self.assertEqual(self.answers(), found)
