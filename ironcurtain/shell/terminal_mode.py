"""Who has the terminal of a shell, and what draws in it while the agent has it."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

import msgspec
from twisted.internet.defer import Deferred, succeed

from ironcurtain.shell.messages import Message


class ShellMode(Enum):
    """Who has the terminal."""

    SHELL = "shell"
    INSTRUCTED = "instructed"
    """An instruction was typed, and the shell has not shown its next prompt yet."""
    AGENT = "agent"
    SUSPENDED = "suspended"
    """The user is back in the shell, and the agent waits."""


class Left(msgspec.Struct, frozen=True):
    """
    What was typed while the agent had the terminal, and became nothing.

    :param unsent: what was being typed for it.
    :param untaken: keys that it did not take.
    :param unread: the begin of a sequence or a paste, whose rest is still to come.
    """

    unsent: str = ""
    untaken: bytes = b""
    unread: bytes = b""


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

    def end(self) -> Left:
        """
        Give the terminal back.

        :returns: what was typed, and is not for the agent any more.
        """


class TerminalHolder:
    """
    Who has the terminal of a shell now.

    :ivar returning: whether the agent has it again, and the shell has not shown its prompt since.
    :ivar users_command: whether a command of the user's runs.
    """

    def __init__(self) -> None:
        self.mode = ShellMode.SHELL
        self.returning = self.users_command = False
        self._resumed: list[Deferred[None]] = []

    @property
    def shows_output(self) -> bool:
        """Whether what the shell writes is for the user's eyes."""
        return self.mode in (ShellMode.SHELL, ShellMode.SUSPENDED) or self.users_command

    def resumed(self) -> Deferred[None]:
        """:returns: fires when the agent has the terminal, so that a command can be typed."""
        if self.mode is not ShellMode.SUSPENDED and not self.returning:
            return succeed(None)
        done: Deferred[None] = Deferred()
        self._resumed.append(done)
        return done

    def give_back(self) -> None:
        """The shell has it."""
        self.mode, self.returning = ShellMode.SHELL, False

    def release(self) -> None:
        """Commands can be typed again."""
        self.returning = False
        waiting, self._resumed = self._resumed, []
        for done in waiting:
            done.callback(None)
