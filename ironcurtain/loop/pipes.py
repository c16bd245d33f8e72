"""A command of this machine without a terminal: its standard streams are pipes."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.terminal.model import Ended
from ironcurtain.terminal.pty import DRAIN_SECONDS, GRACE_SECONDS, find_program, how


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
        self._exited = self._signalled = False
        self._timer: IDelayedCall | None = None
        self.pid = 0
        self.done: Deferred[Ended] = Deferred()

    def spawn(self, argv: Sequence[str], environ: Mapping[str, str], directory: str, stdin: bytes) -> None:
        """
        Start it, as the leader of a session and a process group of its own.

        :param argv: a path, or a name that is looked up in the ``PATH`` of ``environ``.
        :param stdin: what it reads; then its input is at its end.
        :raises NotFound: there is no such command or directory.
        :raises Unavailable: it cannot be started.
        """
        program = find_program(argv[0], environ, directory)
        if (setsid := shutil.which("setsid")) is None:
            raise Unavailable("the program setsid is missing (Debian: apt-get install util-linux)")
        try:
            self._reactor.spawnProcess(
                _Command(self, stdin), setsid, [setsid, program, *argv[1:]], dict(environ), directory
            )
        except OSError as e:
            raise Unavailable(f"the command cannot be started: {e.strerror}") from e

    def pause(self) -> None:
        """Give no more output for now; once the command has ended, the rest comes all the same."""
        if not self._exited:
            self._process.pauseProducing()

    def resume(self) -> None:
        """Give output again."""
        self._process.resumeProducing()

    def stop(self) -> None:
        """SIGTERM; after 5 s SIGKILL. Harmless once it has ended, or is ending."""
        if not self._exited and self._timer is None:
            self._signal(signal.SIGTERM)
            self._timer = self._clock.callLater(GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        """SIGKILL."""
        if not self._exited:
            self._cancel()
            self._signal(signal.SIGKILL)

    def started(self, process: Any) -> None:
        """For the process: it runs, if it has not ended already."""
        self._process, self.pid = process, int(process.pid)

    def exited(self) -> None:
        """For the process: it ended. What it started may still have its pipes."""
        self._exited = True
        self._cancel()
        if self._signalled:  # what it started is to end with it
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.resumeProducing()
        self._timer = self._clock.callLater(DRAIN_SECONDS, self._process.loseConnection)

    def over(self, reason: Failure) -> None:
        """For the process: it ended, and its pipes are closed."""
        self._cancel()
        self.done.callback(how(reason))

    def _signal(self, number: signal.Signals) -> None:
        self._signalled = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        with suppress(ProcessExitedAlready):  # its group is there only once it has made its session
            self._process.signalProcess(number.name.removeprefix("SIG"))

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None


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
