"""The product in the environment of a login shell: it answers as in an empty one."""

from __future__ import annotations

import json
import re

from tests.cli.cases import ProductCase
from tests.shell.test_login_environment import HARMLESS, PLACE

OWN = ("HOME", "PATH", "TMPDIR", "CI", "DOCKER_HOST", "COLUMNS", "XDG_RUNTIME_DIR")
"""What the tests themselves set, or what says where something is: it changes answers rightly."""


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
            found[name] = (done.returncode, text)
        return found

    def test_answers_are_those_of_an_empty_environment(self) -> None:
        self.product.run("init")
        self.answers()  # the first session pins the tools
        expected = self.answers()
        self.assertEqual(expected["start"][0], 0, expected)
        place = self.product.person / "my files"
        (place / ".password-store").mkdir(parents=True)
        before = dict(self.product.environ)
        values = {name: value.replace(PLACE, str(place)) for name, value in HARMLESS.items() if name not in OWN}
        self.product.environ |= {**values, "PWD": str(self.product.project), "OLDPWD": str(self.product.person)}
        self.assertEqual(self.answers(), expected)
        self.assertNotIn("[redacted]", json.dumps(expected))
        self.product.environ = before
