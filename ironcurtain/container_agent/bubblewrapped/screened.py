"""An agent's program with its own screen, in a terminal of its sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from twisted.internet import fdesc
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IPushProducer
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.container.errors import ContainerDied
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container.terminal import TerminalOwner
from ironcurtain.container_agent.bubblewrapped.pipes import LAST_PIECES, PIECE_SIZE
from ironcurtain.container_agent.bubblewrapped.sandbox import BubblewrapSandbox
from ironcurtain.terminal.direct import DirectDescriptor
from ironcurtain.terminal.forked import NoPty, set_size
from ironcurtain.terminal.model import ProgramExit, sane_size


@implementer(IPushProducer)
class SandboxTerminal(DirectDescriptor):
    """
    The master side of a program's terminal, as a stream for a hub. Set :attr:`owner` before the program starts.

    :ivar slave: descriptor of the other side; close it once the program has started.
    :raises NoPty: this machine has no terminal for it.
    """

    owner: TerminalOwner

    def __init__(self, reactor: Any, columns: int, rows: int) -> None:
        super().__init__(reactor)
        try:
            self._master, self.slave = os.openpty()
        except OSError as e:
            raise NoPty(f"no terminal can be opened: {e.strerror}") from e
        fdesc.setNonBlocking(self._master)
        self._size = (0, 0)
        self.connected = 1
        self.resize(columns, rows)
        self.registerProducer(_Input(self), True)

    def pause(self) -> None:
        """Stop reading output for now."""
        self.stopReading()

    def resume(self) -> None:
        """Read output again."""
        if self.connected:
            self.startReading()

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size; the program gets SIGWINCH."""
        if self.connected and sane_size(columns, rows) != self._size:
            self._size = sane_size(columns, rows)
            set_size(self._master, columns, rows)

    def close(self) -> None:
        """Discard further output. Can be called twice."""
        if self.connected:
            self.connectionLost(Failure(ConnectionDone()))

    def finish(self) -> None:
        """The program has ended: read what is there, and close."""
        for _ in range(LAST_PIECES):
            if not self.connected or not self._read():
                break
        self.close()

    def fileno(self) -> int:
        """For the reactor."""
        return self._master

    def doRead(self) -> None:
        """For the reactor: there is output."""
        self._read()

    def writeSomeData(self, data: bytes) -> Any:
        """For the transport's buffer."""
        return fdesc.writeToFD(self._master, data)

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: nobody has the terminal any more."""
        if self.connected:
            self.unregisterProducer()
            FileDescriptor.connectionLost(self, reason)
            os.close(self._master)

    def _read(self) -> bool:
        """:returns: whether there was output."""
        try:
            data = os.read(self._master, PIECE_SIZE)
        except BlockingIOError:
            return False
        except OSError:  # nobody has the other side
            self.stopReading()
            return False
        self.owner.received(data)
        return True


@implementer(IPushProducer)
class _Input:
    """Notified by the transport when input is queued."""

    def __init__(self, terminal: SandboxTerminal) -> None:
        self._terminal = terminal

    def pauseProducing(self) -> None:
        self._terminal.owner.input_full(True)

    def resumeProducing(self) -> None:
        self._terminal.owner.input_full(False)

    def stopProducing(self) -> None:
        pass


class ScreenedBubblewrap:
    """
    A sandbox whose main program is the agent's program. See
    :class:`~ironcurtain.container_agent.screen.ScreenedSandbox`, also for its methods.

    :param sandbox: not started.
    :param size: columns and rows.
    :param on_end: called once with the program's end, after the last output, also after :meth:`stop`; not if it did not
        start.
    """

    def __init__(
        self,
        reactor: Any,
        sandbox: BubblewrapSandbox,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        size: tuple[int, int],
        on_end: Callable[[ProgramExit], None],
    ) -> None:
        self._sandbox, self._argv, self._environment, self._on_end = sandbox, argv, environment, on_end
        self.terminal = SandboxTerminal(reactor, *size)
        self._watching: Deferred[None] | None = None

    @property
    def id(self) -> str:
        """What it is called in records."""
        return self._sandbox.id

    @property
    def name(self) -> str:
        """What it is called by those who look for it."""
        return self._sandbox.name

    async def start(self) -> tuple[ProbeFinding, ...]:
        """Start and probe the sandbox, and then start the program."""
        try:
            findings = await self._sandbox.start()
            self.terminal.startReading()
            ended = self._sandbox.start_in_terminal(self._argv, self._environment, self.terminal.slave)
        except BaseException:
            self.terminal.close()
            raise
        finally:
            os.close(self.terminal.slave)
        self._watching = Deferred.fromCoroutine(self._watch(ended))
        return findings

    async def stop(self) -> None:
        """End the program and everything else in it."""
        with suppress(ContainerDied):
            await self._sandbox.stop()
        if self._watching is not None:
            await self._watching
        self.terminal.close()

    async def _watch(self, ended: Deferred[int]) -> None:
        try:
            status = await ended
            exit = ProgramExit(status, f"exit status {status}")
        except ContainerDied as e:
            exit = ProgramExit(None, str(e))
        self.terminal.finish()
        self._on_end(exit)
