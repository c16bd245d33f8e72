"""The user's shell as a process in a terminal, with what is known of it."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from ironcurtain.home.settings import Settings
from ironcurtain.shell.relay import Relayed
from ironcurtain.shell.starting import ShellStart
from ironcurtain.shell.streams import ShellStreams
from ironcurtain.shell.terminal_lines import TerminalLines
from ironcurtain.shell_integration.marks import (
    CommandEnded,
    DirectoryChanged,
    Mark,
    MarkReader,
    PromptEnded,
    VariableReported,
)
from ironcurtain.shell_integration.typed_marks import UNRECORDED, end_mark, with_marks
from ironcurtain.terminal.pty import LocalPty, PtyOwner

T = TypeVar("T")

MARKS_SECONDS = 2.0
"""How long the shell has to show a prompt with marks, before it is looked whether it is at one without."""

NOTICE_SECONDS = 0.2
"""How long a shell that is known to have no marks has for its prompt, before the user is told."""

HELD_LIMIT = 256 * 1024
"""Most bytes that are held; of more, the last."""

ROW_LIMIT = 4096
"""Most bytes of the last row that are kept."""


@dataclass(slots=True)
class ReportedState:
    """
    What a shell said of itself by marks.

    :ivar directory: the one that it is in.
    :ivar status: of the last command.
    :ivar variables: of its environment, as it reported them last; ``None``: it has no such variable.
    """

    directory: str
    status: int = 0
    variables: dict[str, str | None] = field(default_factory=dict)

    def marked(self, mark: Mark) -> None:
        """It said something."""
        match mark:
            case CommandEnded(status):
                self.status = status
            case DirectoryChanged(path):
                self.directory = path
            case VariableReported(name, value):
                self.variables[name] = value


class ShellOutput:
    """
    What a shell wrote, as far as it is still of use.

    :param lines: the last lines that its terminal showed, without those of the agent's commands.
    :ivar held: output that is not shown yet: of jobs in the background while the agent has the terminal, and prompts.
    :ivar row: the last row of what it showed, as it was written.
    """

    def __init__(self, lines: TerminalLines) -> None:
        self.lines, self.held, self.row = lines, bytearray(), b""

    def hold(self, data: bytes) -> None:
        """:param data: output that is to be shown later."""
        self.held += data
        del self.held[:-HELD_LIMIT]

    def release(self) -> bytes:
        """:returns: the output that was held, which is to be shown now."""
        held = bytes(self.held)
        self.held.clear()
        return held

    def shown(self, data: bytes, of_agent: bool = False) -> None:
        """
        :param data: output that its terminal shows now.
        :param of_agent: whether a command of the agent's wrote it, which the model gets as its result.
        """
        if not of_agent:
            self.lines.feed(data)
        self.row = (self.row + data[-ROW_LIMIT:]).rpartition(b"\n")[2][-ROW_LIMIT:]


class WrappedShell:
    """
    :param start: how it is started.
    :param directory: where it starts.
    :param size: columns and rows of its terminal at first.
    :ivar integrated: whether it says by marks where its prompts and commands begin and end.
    """

    def __init__(
        self, reactor: Any, start: ShellStart, directory: str, size: tuple[int, int], settings: Settings
    ) -> None:
        self._reactor = reactor
        self._prepared, self._start = start.prepared, (directory, *size)
        self._streams = ShellStreams(MarkReader(start.nonce))
        lines = TerminalLines(settings.context.max_terminal_lines, size[0])
        self.state, self.output = ReportedState(directory), ShellOutput(lines)
        self.pty = self.another()
        self.integrated = start.prepared.integrated
        self._recorded = settings.shell.history
        self._nonce = ""
        self._words = b"".join(os.fsencode(word) + b"\0" for word in start.prepared.argv)

    def another(self) -> LocalPty:
        """:returns: a terminal for another command."""
        return LocalPty(self._reactor, self._reactor)

    @property
    def name(self) -> str:
        """``bash``, ``zsh``, ``fish`` or another; of one that replaced it with ``exec``, if it has no marks."""
        if not self.integrated and (name := self._proc("comm")):
            return name.decode(errors="replace").strip()
        return PurePath(self._prepared.argv[0]).name

    @property
    def marks_seconds(self) -> float:
        """How long it has for a prompt with marks."""
        return MARKS_SECONDS if self.integrated else NOTICE_SECONDS

    @property
    def why_not(self) -> str:
        """Why it has no marks, for the user; empty if it should have them."""
        return self._prepared.why_not

    @property
    def no_marks(self) -> str:
        """What the user is told if it shows none."""
        return f"{self.why_not or 'this shell shows no marks'}: begin an instruction with ## instead of #"

    def spawn(self, owner: PtyOwner) -> None:
        """
        Start it.

        :raises NotFound: there is no such shell.
        :raises NoPty: there is no terminal for it.
        """
        self.pty.owner = owner
        self.pty.spawn(self._prepared.argv, self._prepared.environ, *self._start)

    def take_over(self, owner: PtyOwner, pid: int, master: int, relayed: Relayed) -> None:
        """
        Go on with it after it was relayed, in place of :meth:`spawn`.

        :param master: descriptor of the master side of its terminal.
        """
        self.pty.owner = owner
        self._streams = relayed.streams
        self.pty.adopt(pid, master)
        self.pty.write(relayed.untyped)

    async def stop(self) -> None:
        """Hang up, as when a terminal is closed."""
        if self.pty.pid and not self.pty.done.called:
            self.pty.stop(signal.SIGHUP)
            waiting: Deferred[None] = Deferred()

            def over(result: T) -> T:
                waiting.callback(None)
                return result

            self.pty.done.addBoth(over)
            await waiting

    @property
    def directory(self) -> str:
        """The directory that it is in."""
        if not self.integrated:
            try:
                return os.readlink(f"/proc/{self.pty.pid}/cwd")
            except OSError:
                pass
        return self.state.directory

    @property
    def pasting(self) -> bool:
        """Whether it takes pastes as such."""
        return self._streams.reader.bracketed_paste

    @property
    def ahead(self) -> bytes:
        """What was typed after the last Enter, with the keys that edited it, as far as is known."""
        return self._streams.ahead

    def read(self, data: bytes) -> Iterable[bytes | Mark]:
        """:returns: its output, and what its marks say."""
        return self._streams.reader.feed(data)

    def release(self) -> bytes:
        """:returns: the output that was held, which is to be shown now."""
        held = self.output.release()
        # Without marks, the Enter after an instruction was shown already.
        return held if self.integrated else held.removeprefix(b"\r\n")

    def type(self, data: bytes) -> list[str]:
        """
        Give it keys.

        :returns: instructions among them, if it has no marks to say so itself.
        """
        typed = self._streams.typed(data, self.integrated, lambda: self.pty.in_foreground)
        if typed.echo:
            self.pty.owner.received(typed.echo)
        if typed.forwarded:
            self.pty.write(typed.forwarded)
        return list(typed.instructions)

    def resize(self, columns: int, rows: int) -> None:
        """Its terminal has another size."""
        self.pty.resize(columns, rows)
        self.output.lines.resize(columns)

    def give_up_marks(self) -> None:
        """It has none."""
        self.integrated = False

    def marked(self, mark: Mark) -> None:
        """It said something about itself."""
        self.state.marked(mark)
        if isinstance(mark, PromptEnded):
            self.prompted()

    def prompted(self) -> None:
        """It showed a prompt with marks, maybe after it was thought to have none."""
        self.integrated, self._words = True, self._proc("cmdline")

    @property
    def replaced(self) -> bool:
        """Whether another program has taken the place of the one that showed marks, as by ``exec``."""
        return self.integrated and self._words not in (b"", self._proc("cmdline"))

    @property
    def edits(self) -> bool:
        """Whether its line editor waits for keys, as far as is known; while it reads its files, none does."""
        return self.shows_lines and self.pty.takes_keys

    @property
    def shows_lines(self) -> bool:
        """Whether it has the terminal itself, and no program in its place draws the whole screen."""
        return self.pty.in_foreground and not self._streams.reader.alternate

    def line(self, command: str) -> str | None:
        """:returns: what to type for a command; ``None``: it is a shell whose syntax is not known."""
        if self.integrated:
            return command if self._recorded else UNRECORDED + command
        self._nonce = secrets.token_hex(16)
        self._streams.reader.also(self._nonce)
        return with_marks(command, self.name, self._nonce)

    def end_line(self) -> str | None:
        """
        :returns: what to type after an interrupt for the mark that is missing; empty while a command still runs, and
            ``None`` if marks come by themselves.
        """
        if self.integrated:
            return None
        return end_mark(self.name, self._nonce) if self.pty.in_foreground else ""

    def _proc(self, name: str) -> bytes:
        """:returns: what the kernel says of its process; nothing on systems without ``/proc``."""
        try:
            return Path(f"/proc/{self.pty.pid}/{name}").read_bytes()
        except OSError:
            return b""
