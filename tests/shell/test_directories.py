"""Directories that an instruction cannot be given in."""

from __future__ import annotations

from ironcurtain.errors import UsageError
from ironcurtain.shell.context import Prompt
from tests.shell.assistant import AssistantTestCase


class DirectoryTests(AssistantTestCase):
    def test_state_that_cannot_be_described_ends_the_instruction_only(self) -> None:
        def refuse(instruction: str) -> Prompt:
            raise UsageError("the directory cannot be used")

        self.describe = refuse  # type: ignore[method-assign]
        self.instruct()
        self.assertEqual((self.done().error, self.model.requests), ("the directory cannot be used", []))
        del self.describe
        self.instruct()
        self.say("It is.")
        self.assertEqual(self.done().text, "It is.")
