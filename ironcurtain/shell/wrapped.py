"""The user's shell as a process in a terminal, with what is known of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

from ironcurtain.shell.fallback import FallbackPrefix
from ironcurtain.shell.integration import Prepared
from ironcurtain.shell.marks import Mark, MarkReader
from ironcurtain.shell.terminal_lines import TerminalLines
from ironcurtain.terminal.pty import LocalPty, PtyOwner

T = TypeVar("T")


class WrappedShell:
    """
    :param prepared: the command line that starts it, and its environment.
    :param directory: where it starts.
    :param size: columns and rows of its terminal at first.
    :ivar name: ``bash``, ``zsh``, ``fish`` or another.
    :ivar integrated: whether it says by marks where its prompts and commands begin and end.
    :ivar directory: the one that it is in.
    :ivar status: of the last command.
    :ivar lines: the last lines that its terminal showed.
    :ivar typed_ahead: whether something was typed after the last Enter.
    """

    def __init__(
        self, reactor: Any, prepared: Prepared, nonce: str, directory: str, size: tuple[int, int], lines: TerminalLines
    ) -> None:
        self._reactor = reactor
        self._prepared, self._start, self._size = prepared, directory, size
        self._reader, self._fallback = MarkReader(nonce), FallbackPrefix()
        self.pty = self.another()
        self.name = PurePath(prepared.argv[0]).name
        self.integrated = prepared.integrated
        self.status = 0
        self.lines = lines
        self.typed_ahead = False
        self._directory = directory

    def another(self) -> LocalPty:
        """:returns: a terminal for another command."""
        return LocalPty(self._reactor, self._reactor)

    def spawn(self, owner: PtyOwner) -> None:
        """
        Start it.

        :raises NotFound: there is no such shell.
        :raises NoPty: there is no terminal for it.
        """
        self.pty.owner = owner
        self.pty.spawn(self._prepared.argv, self._prepared.environ, self._start, *self._size)

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
                return self._directory
        return self._directory

    @directory.setter
    def directory(self, path: str) -> None:
        self._directory = path

    @property
    def pasting(self) -> bool:
        """Whether it takes pastes as such."""
        return self._reader.bracketed_paste

    def read(self, data: bytes) -> Iterable[bytes | Mark]:
        """:returns: its output, and what its marks say."""
        return self._reader.feed(data)

    def type(self, data: bytes) -> list[str]:
        """
        Give it keys.

        :returns: instructions among them, if it has no marks to say so itself.
        """
        instructions: list[str] = []
        if not self.integrated:
            typed = self._fallback.feed(data, self.pty.in_foreground)
            data, instructions = typed.forwarded, list(typed.instructions)
            if typed.echo:
                self.pty.owner.received(typed.echo)
        if data:
            self.typed_ahead = not data.endswith((b"\r", b"\n"))
            self.pty.write(data)
        return instructions

    def resize(self, columns: int, rows: int) -> None:
        """Its terminal has another size."""
        self.pty.resize(columns, rows)
        self.lines.resize(columns)

    def give_up_marks(self) -> None:
        """It has none."""
        self.integrated = False
