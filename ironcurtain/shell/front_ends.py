"""Those who are told what the agent of a shell does."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.shell.announcements import Announcements
from ironcurtain.shell.messages import Message
from ironcurtain.shell.terminal_mode import AgentMode
from ironcurtain.terminal.hub import Hub


class FrontEnds:
    """
    :ivar terminal: of the shell; ``None``: the session takes messages.
    :ivar agent_mode: draws what the agent does in that terminal.
    :ivar trace_id: of the trace that the agent belongs to.
    :ivar announcements: for who is in the shell.
    """

    def __init__(self, announcements: Announcements) -> None:
        self.announcements = announcements
        self.terminal: Hub | None = None
        self.agent_mode: AgentMode | None = None
        self.trace_id = ""
        self._endings: list[Callable[[], None]] = []
        self._watchers: list[Callable[[Message], None]] = []

    def begin(self) -> None:
        """The agent has the terminal."""
        if self.agent_mode is not None:
            self.agent_mode.begin()

    def suspend(self) -> None:
        """The shell has it for a while."""
        if self.agent_mode is not None:
            self.agent_mode.suspend()

    def ended(self) -> None:
        """The shell has ended."""
        self.announcements.stop()
        for ending in self._endings:
            ending()

    def at_end(self, function: Callable[[], None]) -> None:
        """:param function: is called when the shell has ended."""
        self._endings.append(function)

    def watch(self, watcher: Callable[[Message], None]) -> None:
        """:param watcher: gets all messages from now on."""
        self._watchers.append(watcher)

    def tell(self, message: Message) -> None:
        """Give all of them a message."""
        if self.agent_mode is not None:
            self.agent_mode.tell(message)
        for watcher in self._watchers:
            watcher(message)
