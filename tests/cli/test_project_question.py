"""``ironcurtain start`` at a terminal, in a project that says something about its containers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.product import Product
from tests.tmux import Tmux

SAID = r"""{
    "image": "node:22",
    "postCreateCommand": "npm ci\nnpm run build\u001b[2J",
    "postStartCommand": {"database": ["pg_ctl", "start"]}
}"""


class QuestionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.environ |= {"DOCKER_HOST": "unix:///nowhere.sock", "ANTHROPIC_API_KEY": "sk-ant-x"}
        self.file = self.product.project / ".devcontainer.json"
        self.file.write_text(SAID)
        self.terminal = Tmux(self.product, 80, 24)
        self.addCleanup(self.terminal.close)

    def start(self, number: int) -> None:
        """Type the command, which ends with this number. No session comes of it here, since no Engine answers."""
        words = "start --agent claude-code --sandbox container --workspace . Hello"
        self.terminal.type(f"clear; {self.product.command()[0]} {words}; echo st''atus $? {number}")

    def test_both_questions_are_shown_whole_and_asked_once_until_something_changes(self) -> None:
        self.start(1)
        text = self.terminal.wait(r"^Build the agents' containers of this project so\? \[y/n\]:")
        self.assertIn("  image: node:22", text)
        self.assertNotIn("npm ci", text)
        self.terminal.type("y")
        text = self.terminal.wait(r"^Run them in the sandboxes of this project's agents\? \[y/n\]:")
        for line in ("    npm ci", "    npm run build\\x1b[2J", "  postStartCommand database, at each start:"):
            self.assertIn(f"{line}\n", text)
        self.terminal.type("n")
        self.terminal.wait("^status 69 1$")
        self.start(2)
        self.assertNotIn("[y/n]", self.terminal.wait("^status 69 2$"))
        self.file.write_text(SAID.replace("pg_ctl", "evil"))
        self.start(3)
        self.assertNotIn("Build the", self.terminal.wait(r"agents\? \[y/n\]:"))
        self.terminal.type("y")
        self.terminal.wait("^status 69 3$")
        self.assertIn('"run": true', (self.product.home / "images" / "projects.json").read_text())
