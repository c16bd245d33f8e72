"""A command of this machine in a pseudo-terminal."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IPushProducer, IReactorProcess, IReactorTime
from twisted.internet.process import PTYProcess
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.process.programs import find_program
from ironcurtain.process.termination import Termination, signal_group
from ironcurtain.terminal.adopted import AdoptedProcess
from ironcurtain.terminal.forked import TERM, NoPty, set_size
from ironcurtain.terminal.model import ProgramExit, sane_size


class PtyOwner(Protocol):
    """Receives the terminal's events: usually a :class:`~ironcurtain.terminal.hub.Hub`."""

    def received(self, data: bytes) -> None:
        """The command wrote output."""

    def input_full(self, full: bool) -> None:
        """The command stopped (``True``) or resumed reading its input."""

    def ended(self, ended: ProgramExit) -> None:
        """The command ended, and all its output was received. Called once."""


class LocalPty:
    """
    A pseudo-terminal for one command. Set :attr:`owner` before the reactor turns.

    :param clock: has the same time as the reactor; the reactor itself except in tests.
    :ivar done: fires after the owner was notified of the end.
    """

    log = Logger()
    owner: PtyOwner

    def __init__(self, reactor: IReactorProcess, clock: IReactorTime) -> None:
        self._reactor, self._clock = reactor, clock
        self._process: PTYProcess | AdoptedProcess | None = None
        self._size = (0, 0)
        self._ending = Termination(clock, self._foreground)
        self.pid = 0
        self.done: Deferred[ProgramExit] = Deferred()

    def spawn(self, argv: Sequence[str], environ: Mapping[str, str], directory: str, columns: int, rows: int) -> None:
        """
        Start the command as the leader of a new session and process group.

        :param argv: a path, or a name that is searched for in the ``PATH`` of ``environ``.
        :param environ: its complete environment; ``TERM`` is added if missing.
        :raises NotFound: there is no such command or directory.
        :raises NoPty: there is no pseudo-terminal for it, or no process.
        """
        program = find_program(argv[0], environ, directory)
        try:
            master, slave = os.openpty()
        except OSError as e:
            raise NoPty(f"no terminal can be opened: {e.strerror}") from e
        try:
            set_size(slave, columns, rows)
            self._reactor.spawnProcess(
                _Command(self),
                program,
                list(argv),
                {**TERM, **environ},
                directory,
                usePTY=(master, slave, ""),  # type: ignore[arg-type]  # Twisted also accepts an open terminal
            )
        except OSError as e:
            os.close(master)
            os.close(slave)
            raise NoPty(f"the command cannot be started: {e.strerror}") from e
        self._size = sane_size(columns, rows)

    def adopt(self, pid: int, master: int) -> None:
        """
        Take over a command that runs in a terminal already, in place of :meth:`spawn`.

        :param pid: of a child of this process that nobody waits for, which leads its session.
        :param master: descriptor of its terminal's master side, which is closed at the end.
        """
        self._size = sane_size(*os.get_terminal_size(master))
        AdoptedProcess(self._reactor, pid, master, _Command(self))

    @property
    def echoes(self) -> bool:
        """Whether the terminal echoes input; a program that asks for a password disables that."""
        return bool(self._local_flags & termios.ECHO)

    @property
    def takes_keys(self) -> bool:
        """Whether input is read key by key, as line editors do, and not line by line."""
        return not self._local_flags & termios.ICANON

    def write(self, data: bytes) -> None:
        """Send input."""
        if self._process is not None:
            self._process.write(data)

    def pause(self) -> None:
        """Pause output. Once the command has ended, the rest is delivered anyway."""
        if self._process is not None and not self._ending.exited:
            self._process.stopReading()

    def resume(self) -> None:
        """Resume output."""
        if self._process is not None and self._process.connected:
            self._process.startReading()

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size; the command gets SIGWINCH."""
        descriptor = self._descriptor
        if descriptor is not None and sane_size(columns, rows) != self._size:
            self._size = sane_size(columns, rows)
            set_size(descriptor, columns, rows)

    def close(self) -> None:
        """Discard further output, and end the command as :meth:`stop` does."""
        self.stop()

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """
        Send a signal, and SIGKILL after :data:`~ironcurtain.process.termination.GRACE_SECONDS`. Can be called again.

        :param first: the first signal; interactive shells ignore SIGTERM, and end on SIGHUP.
        """
        self._ending.stop(first)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._ending.kill()

    def signal_foreground(self, number: signal.Signals) -> None:
        """
        Signal the job that has the terminal now.

        :param number: the command itself, if it has the terminal, gets only SIGINT, as from Ctrl-C.
        """
        for group in self._foreground():
            if group != self.pid or number is signal.SIGINT:
                signal_group(group, number)

    @property
    def in_foreground(self) -> bool:
        """Whether the command itself has the terminal, and not one of its jobs."""
        return self.pid in self._foreground()

    def started(self, process: PTYProcess | AdoptedProcess) -> None:
        """For the process: it started."""
        pid: int = process.pid  # type: ignore[assignment]  # Twisted's class says None
        self._process, self.pid = process, pid
        self._ending.began(process)
        process.registerProducer(_Input(self), True)

    def exited(self) -> None:
        """For the process: it exited, and the kernel has hung up on all other processes with the terminal."""
        self._ending.exit(self._drained)
        self.resume()

    def _drained(self) -> None:
        if self._process is not None and self._process.connected:
            self._process.connectionLost(Failure(ConnectionDone()))

    def over(self, reason: Failure) -> None:
        """For the process: it exited, and the terminal has no more output."""
        self._ending.over()
        ended = how(reason)
        self.owner.ended(ended)
        self.done.callback(ended)

    def _foreground(self) -> set[int]:
        """The foreground process group: a shell gives each job a group."""
        if (descriptor := self._descriptor) is not None:
            with suppress(OSError):
                return {os.tcgetpgrp(descriptor)} - {0}
        return set()

    @property
    def _local_flags(self) -> int:
        """How the terminal treats input: c_lflag of termios(3)."""
        if (descriptor := self._descriptor) is not None:
            with suppress(termios.error):  # the command has just ended
                return int(termios.tcgetattr(descriptor)[3])
        return termios.ICANON

    @property
    def _descriptor(self) -> int | None:
        """Descriptor of the terminal while it is open."""
        return self._process.fileno() if self._process is not None and self._process.connected else None


class _Command(ProcessProtocol):
    transport: PTYProcess | AdoptedProcess  # type: ignore[assignment]  # what both have is used

    def __init__(self, pty: LocalPty) -> None:
        self._pty = pty

    def connectionMade(self) -> None:
        self._pty.started(self.transport)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._pty.owner.received(data)

    def processExited(self, reason: Failure) -> None:
        self._pty.exited()

    def processEnded(self, reason: Failure) -> None:
        self._pty.over(reason)


@implementer(IPushProducer)
class _Input:
    """Notified by the transport when input is queued."""

    def __init__(self, pty: LocalPty) -> None:
        self._pty = pty

    def pauseProducing(self) -> None:
        self._pty.owner.input_full(True)

    def resumeProducing(self) -> None:
        self._pty.owner.input_full(False)

    def stopProducing(self) -> None:
        pass


def how(reason: Failure) -> ProgramExit:
    """:param reason: Twisted's failure for a process that exited."""
    number, status = getattr(reason.value, "signal", None), getattr(reason.value, "exitCode", None)
    if number is not None:
        return ProgramExit(128 + number, f"ended by signal {signal.Signals(number).name}")
    return ProgramExit(status or 0, f"ended with status {status}" if status else "")
