"""
Start the user's shell at once, and relay between it and the terminal while the rest of this program is imported.

This module and all that it imports is on the way to the first prompt; hence no Twisted.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from ironcurtain.process.programs import find_program
from ironcurtain.shell.relay import Relay, Relayed
from ironcurtain.shell.starting import ShellStart
from ironcurtain.terminal.forked import set_size, start_in_terminal
from ironcurtain.terminal.raw import Guard, RawMode


class EarlyShell:
    """
    The user's shell in a terminal, relayed to this process's one until :meth:`hand_over`.

    :param start: how it is started, in the current directory.
    :param raw: this process's terminal.
    :raises NotFound: there is no such shell.
    :raises NoPty: there is no terminal for it.
    :ivar pid: its process.
    """

    def __init__(self, start: ShellStart, raw: RawMode) -> None:
        argv, environ = start.prepared.argv, start.prepared.environ
        self.start, self.raw = start, raw
        self._guard = Guard()
        self._relay: Relay | None = None
        program = find_program(argv[0], environ, os.getcwd())
        self.pid, self._master = start_in_terminal(program, argv, environ, raw.size())
        os.set_blocking(self._master, False)

    def begin(self, descriptor: int = 0) -> None:
        """
        Switch this process's terminal to raw mode, and relay.

        :param descriptor: of that terminal.
        """
        self._guard.begin(descriptor)
        self.raw.begin()
        self.raw.on_resize(lambda: set_size(self._master, *self.raw.size()))
        set_size(self._master, *self.raw.size())
        integrated = self.start.prepared.integrated
        self._relay = Relay(self.raw.opened, self._master, self.start.nonce, integrated, self._in_foreground)
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
        self.raw.close()
        self._guard.end()

    def _in_foreground(self) -> bool:
        with suppress(OSError):
            return os.tcgetpgrp(self._master) == self.pid
        return False
