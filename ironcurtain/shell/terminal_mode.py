"""Who has the terminal of a shell, and what draws in it while the agent has it."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from ironcurtain.shell.messages import Message


class ShellMode(Enum):
    """Who has the terminal."""

    SHELL = "shell"
    INSTRUCTED = "instructed"
    """An instruction was typed, and the shell has not shown its next prompt yet."""
    AGENT = "agent"
    SUSPENDED = "suspended"
    """The user is back in the shell, and the agent waits."""


class AgentMode(Protocol):
    """The agent's part of the terminal."""

    def begin(self) -> None:
        """Take the terminal."""

    def tell(self, message: Message) -> None:
        """Show what the agent says."""

    def output(self, data: bytes) -> None:
        """Show output of the command that runs."""

    def typed(self, data: bytes) -> None:
        """Keys."""

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has another size."""

    def suspend(self) -> None:
        """Give the terminal back for now."""

    def end(self) -> None:
        """Give the terminal back."""
