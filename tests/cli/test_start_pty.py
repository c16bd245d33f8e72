"""``ironcurtain start --pty``, ``attach`` and ``observe``: what is refused, and how; and which agent it is."""

from __future__ import annotations

import subprocess

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.start import choose_agent
from tests.product import Product
from tests.tmux import Tmux


class ChoiceTests(SynchronousTestCase):
    def test_the_agent_that_is_asked_for_wins(self) -> None:
        self.assertEqual(choose_agent("codex", "gemini", True), ("codex", "--agent"))

    def test_then_the_configured_one(self) -> None:
        self.assertEqual(choose_agent(None, "gemini", True), ("gemini", "default_agent"))

    def test_then_one_that_has_a_screen(self) -> None:
        self.assertEqual(choose_agent(None, "", True), ("claude-code", "the default with --pty"))
        self.assertEqual(choose_agent(None, "", False), ("builtin", "the default"))


class RefusalTests(SynchronousTestCase):
    """Before anything is made."""

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))

    def fails(self, *words: str, status: int) -> str:
        """:returns: what a command says that fails."""
        done: subprocess.CompletedProcess[str] = self.product.run(*words)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(list(self.product.home.glob("sessions/*")), [])
        return done.stderr

    def test_the_built_in_agent(self) -> None:
        self.assertIn(
            "the built-in agent has no interactive interface",
            self.fails("start", "--pty", "--agent", "builtin", status=64),
        )
        self.product.environ["IRONCURTAIN_DEFAULT_AGENT"] = "builtin"
        self.assertIn("the built-in agent has no interactive interface", self.fails("start", "--pty", status=64))

    def test_an_agent_that_does_not_exist(self) -> None:
        self.assertIn("there is no agent 'no-such'", self.fails("start", "--pty", "--agent", "no-such", status=64))

    def test_without_a_terminal(self) -> None:
        self.assertIn("this needs a terminal", self.fails("start", "--pty", status=64))
        for command in ("attach", "observe"):  # a conversation needs none
            self.assertIn("there is no running session 1", self.fails(command, "1", status=69))

    def test_in_a_terminal(self) -> None:
        """Without Docker, without a session: a sentence each, and the terminal is as it was."""
        self.product.environ |= {"DOCKER_HOST": "unix:///nowhere.sock", "ANTHROPIC_API_KEY": "sk-ant-x"}
        terminal = Tmux(self.product, 100, 30)
        self.addCleanup(terminal.close)
        program = self.product.command()[0]
        terminal.type(f"stty -g > before; {program} start --pty --sandbox container; echo st''atus $?; stty -g > after")
        text = terminal.wait("^status 69$")
        self.assertIn("Agent: claude-code (the default with --pty)", text)
        self.assertIn("no Docker Engine answers at unix:///nowhere.sock", text)
        self.assertIn("ironcurtain doctor", text.replace("\n", ""))
        before, after = (self.product.project / name for name in ("before", "after"))
        terminal.type(f"clear; {program} attach 7; echo atta''ched $?")
        self.assertIn("there is no running session 7", terminal.wait("^attached 69$"))
        self.assertEqual(after.read_text(), before.read_text())
        self.assertEqual(list(self.product.home.glob("sessions/*")), [])
