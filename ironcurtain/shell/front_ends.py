"""Those who are told what the agent of a shell does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ironcurtain.session import events
from ironcurtain.session.parts import Core
from ironcurtain.shell.announcements import Announcements, above_prompt, announced
from ironcurtain.shell.messages import Message
from ironcurtain.shell.terminal_mode import AgentMode, ShellMode, TerminalHolder
from ironcurtain.shell.wrapped import WrappedShell
from ironcurtain.terminal.hub import Hub


class FrontEnds:
    """
    :param clean: keeps secrets out of the records.
    :param trace_id: of the trace that the agent belongs to.
    :ivar holder: says who has the terminal.
    :ivar terminal: of the shell; ``None``: the session takes messages.
    :ivar agent_mode: draws what the agent does in that terminal.
    :ivar announcements: for who is in the shell.
    """

    def __init__(self, core: Core, wrapped: WrappedShell, clean: Callable[[str], str], trace_id: str) -> None:
        self._emit, self._wrapped, self.clean, self.trace_id = core.emit, wrapped, clean, trace_id
        self.holder = TerminalHolder()
        self.announcements = Announcements(core.services.clock, self._is_at_prompt, self._announce)
        self.terminal: Hub | None = None
        self.agent_mode: AgentMode | None = None
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
        if self.holder.mode is ShellMode.SUSPENDED and (words := announced(message)):
            self.say(words)

    def say(self, *sentences: str) -> None:
        """Tell the user something who is in the shell, and whoever watches the session."""
        for sentence in sentences:
            self._emit(events.Notice(text=self.clean(sentence)))
        self.announcements.say(*sentences)

    def _is_at_prompt(self) -> bool:
        # Without marks nobody says that a command has ended.
        runs = self.holder.users_command and self._wrapped.integrated
        return not runs and self._wrapped.shows_lines

    def _announce(self, sentences: Sequence[str]) -> None:
        if self.terminal is not None:
            self.terminal.received(above_prompt(sentences, self._wrapped.output.row))
