"""A command of this machine without a terminal: its standard streams are pipes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.terminal.ending import Ending
from ironcurtain.terminal.model import Ended
from ironcurtain.terminal.pty import find_program, how


class Owner(Protocol):
    """Who hears from the command."""

    def received(self, data: bytes) -> None:
        """It wrote on its standard output."""

    def complained(self, data: bytes) -> None:
        """It wrote on its error output."""


class PipedCommand:
    """
    One run of a command. Set :attr:`owner` before the reactor turns.

    :param clock: has the same time as the reactor; the reactor itself outside of tests.
    :ivar done: fires when it ended, and all that it wrote was received.
    """

    owner: Owner

    def __init__(self, reactor: IReactorProcess, clock: IReactorTime) -> None:
        self._reactor, self._clock = reactor, clock
        self._process: Any = None
        self._ending = Ending(clock)
        self.pid = 0
        self.done: Deferred[Ended] = Deferred()

    def spawn(self, argv: Sequence[str], environ: Mapping[str, str], directory: str, stdin: bytes) -> None:
        """
        Start it, as the leader of a session and a process group of its own. Where the program setpriv is there, it gets
        SIGTERM should this process be killed; one in a terminal gets SIGHUP then, without help.

        :param argv: a path, or a name that is looked up in the ``PATH`` of ``environ``.
        :param stdin: what it reads; then its input is at its end.
        :raises NotFound: there is no such command or directory.
        :raises Unavailable: it cannot be started.
        """
        program = find_program(argv[0], environ, directory)
        if (setsid := shutil.which("setsid")) is None:
            raise Unavailable("the program setsid is missing (Debian: apt-get install util-linux)")
        setpriv = shutil.which("setpriv")
        until_we_die = (setpriv, "--pdeathsig", "TERM") if setpriv is not None else ()
        line = [setsid, *until_we_die, program, *argv[1:]]
        try:
            self._reactor.spawnProcess(_Command(self, stdin), setsid, line, dict(environ), directory)
        except OSError as e:
            raise Unavailable(f"the command cannot be started: {e.strerror}") from e

    def pause(self) -> None:
        """Give no more output for now; once the command has ended, the rest comes all the same."""
        if not self._ending.exited:
            self._process.pauseProducing()

    def resume(self) -> None:
        """Give output again."""
        self._process.resumeProducing()

    def stop(self) -> None:
        """SIGTERM; after :data:`~ironcurtain.terminal.ending.GRACE_SECONDS` SIGKILL. Harmless once it is ending."""
        self._ending.stop()

    def kill(self) -> None:
        """SIGKILL."""
        self._ending.kill()

    def started(self, process: Any) -> None:
        """For the process: it runs, if it has not ended already."""
        self._process, self.pid = process, int(process.pid)
        self._ending.began(process)

    def exited(self) -> None:
        """For the process: it ended. What it started may still have its pipes."""
        self._ending.exit(self._process.loseConnection)
        self._process.resumeProducing()

    def over(self, reason: Failure) -> None:
        """For the process: it ended, and its pipes are closed."""
        self._ending.over()
        self.done.callback(how(reason))


class _Command(ProcessProtocol):
    transport: Any

    def __init__(self, command: PipedCommand, stdin: bytes) -> None:
        self._command, self._stdin = command, stdin

    def connectionMade(self) -> None:
        self._command.started(self.transport)
        self.transport.write(self._stdin)
        self.transport.closeStdin()

    def outReceived(self, data: bytes) -> None:
        self._command.owner.received(data)

    def errReceived(self, data: bytes) -> None:
        self._command.owner.complained(data)

    def processExited(self, reason: Failure) -> None:
        self._command.exited()

    def processEnded(self, reason: Failure) -> None:
        self._command.over(reason)
