"""Messages that are commands."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.agent_commands import Clear, Compact, UseModel, read_command


class ReadTests(SynchronousTestCase):
    def test_each_command(self) -> None:
        self.assertEqual(read_command("/clear"), Clear())
        self.assertEqual(read_command(" /compact "), Compact())
        self.assertEqual([read_command(text) for text in ("/model", "/model x/y")], [UseModel(""), UseModel("x/y")])

    def test_other_messages_are_for_the_agent(self) -> None:
        for text in ("clear", "/clear all", "/model a b", "/clearly", "", "do /clear"):
            self.assertIsNone(read_command(text), text)
