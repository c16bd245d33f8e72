"""
Start the user's shell at once, and relay between it and the terminal while the rest of this program is imported.

What this module imports is on the way to the first prompt; hence no Twisted, and what the shell's start does not need
is imported after it.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from ironcurtain.process.programs import find_program
from ironcurtain.shell.starting import ShellStart
from ironcurtain.terminal.forked import set_size, start_in_terminal

if TYPE_CHECKING:
    from ironcurtain.shell.relay import Relay, Relayed
    from ironcurtain.terminal.changes import TerminalChanges
    from ironcurtain.terminal.guard import Guard
    from ironcurtain.terminal.raw import RawMode


class EarlyShell:
    """
    The user's shell in a terminal, relayed to this process's one until :meth:`hand_over`.

    :param start: how it is started, in the current directory.
    :param descriptor: of this process's terminal.
    :raises NotFound: there is no such shell.
    :raises NoPty: there is no terminal for it.
    :ivar pid: its process.
    """

    def __init__(self, start: ShellStart, descriptor: int = 0) -> None:
        argv, environ = start.prepared.argv, start.prepared.environ
        self.start = start
        self._descriptor = descriptor
        self._raw: RawMode | None = None
        self._guard: Guard | None = None
        self._relay: Relay | None = None
        self._changes: TerminalChanges | None = None
        program = find_program(argv[0], environ, os.getcwd())
        self.pid, self._master = start_in_terminal(program, argv, environ, _size(descriptor))
        os.set_blocking(self._master, False)

    @property
    def raw(self) -> RawMode:
        """This process's terminal, from :meth:`begin` on."""
        assert self._raw is not None  # the caller calls begin first
        return self._raw

    @property
    def changes(self) -> TerminalChanges:
        """To this process's terminal, by all that was written to it, from :meth:`begin` on."""
        assert self._changes is not None  # the caller calls begin first
        return self._changes

    def begin(self) -> None:
        """
        Switch this process's terminal to raw mode, and relay.

        :raises NoTerminal: it is not a terminal.
        """
        from ironcurtain.shell.relay import Relay
        from ironcurtain.terminal.changes import TerminalChanges
        from ironcurtain.terminal.guard import Guard
        from ironcurtain.terminal.raw import RawMode

        self._raw, self._guard = RawMode(self._descriptor), Guard()
        self._guard.begin(self._descriptor)
        self._changes = TerminalChanges()
        self._raw.restoration = self._changes.restoration
        self._raw.begin()
        self._raw.on_resize(lambda: set_size(self._master, *self.raw.size()))
        set_size(self._master, *self._raw.size())
        integrated = self.start.prepared.integrated
        self._relay = Relay(
            self._raw.opened, self._master, self.start.nonce, integrated, self._in_foreground, self._changes
        )
        self._thread = threading.Thread(target=self._relay.run, daemon=True)
        self._thread.start()

    def hand_over(self) -> tuple[int, Relayed]:
        """
        End the relay. From now on the caller reads and writes both terminals, and is told of changes of size.

        :returns: the descriptor of the master side of the shell's terminal, for the caller to close; where the relay
            stopped.
        """
        assert self._relay is not None  # the caller calls begin first
        relay, self._relay = self._relay, None
        relay.stop()
        self._thread.join()
        master, self._master = self._master, -1
        return master, relay.close()

    def close(self) -> None:
        """Hang up a shell that was not handed over, and restore this process's terminal."""
        if self._relay is not None:
            os.close(self.hand_over()[0])
        elif self._master >= 0:
            os.close(self._master)
        if self._raw is not None:
            self._raw.close()
        if self._guard is not None:
            self._guard.end()

    def _in_foreground(self) -> bool:
        with suppress(OSError):
            return os.tcgetpgrp(self._master) == self.pid
        return False


def _size(descriptor: int) -> tuple[int, int]:
    with suppress(OSError):  # it is gone
        return os.get_terminal_size(descriptor)
    return 0, 0
