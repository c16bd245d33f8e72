"""A confined process that reads untrusted input: starts it, communicates over a socket, and kills it."""

from __future__ import annotations

import signal
import socket
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import (
    IAddress,
    IPushProducer,
    IReactorProcess,
    IReactorSocket,
    IReactorTime,
)
from twisted.internet.protocol import ProcessProtocol, ServerFactory, connectionDone
from twisted.internet.protocol import Protocol as StreamProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import ProtocolViolation
from ironcurtain.process.bounded import Kept
from ironcurtain.process.frames import MessageReader
from ironcurtain.services.stream import StreamTransport
from ironcurtain.text.display import shorten

WORDS_LIMIT = 300
"""Maximum length in characters of a failed process's last output in the log."""

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)


class WorkerReactor(IReactorProcess, IReactorSocket, IReactorTime):
    """The parts of a reactor that the process needs."""


class WorkerOwner(Protocol[M_contra]):
    """Receives a worker's messages and end."""

    def received(self, message: M_contra) -> None:
        """A message arrived."""

    def blocked(self, blocked: bool) -> None:
        """:param blocked: whether sent data waits to be read."""

    def lost(self, why: str = "") -> None:
        """:param why: why it failed; empty: because its connection ended."""

    def ended(self, how: str, words: str) -> None:
        """
        Its process ended.

        :param words: its last output.
        """


class Worker(Generic[M]):
    """
    :param command: runs it, with the socket as its standard input and an empty environment.
    :param reader: reads its messages.
    :raises OSError: it cannot be started.
    """

    def __init__(
        self, reactor: WorkerReactor, command: tuple[str, ...], reader: MessageReader[M], owner: WorkerOwner[M]
    ) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            descriptors: dict[int, int | str] = {0: theirs.fileno(), 1: "r", 2: "r"}
            self._process = reactor.spawnProcess(_Output(owner), command[0], command, {}, childFDs=descriptors)
            self._stream = _Stream(reader, owner)
            reactor.adoptStreamConnection(ours.fileno(), socket.AF_UNIX, _One(self._stream))

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        pid: int | None = self._process.pid
        return pid

    def write(self, data: bytes) -> None:
        """:param data: frames."""
        self._stream.transport.write(data)

    def kill(self) -> None:
        """Kill it. It has no state to lose. Unread messages are dropped."""
        self._stream.close()
        with suppress(ProcessExitedAlready):
            self._process.signalProcess("KILL")

    def forget(self) -> None:
        """Ignore its further messages."""
        self._process.loseConnection()


@implementer(IPushProducer)
class _Stream(StreamProtocol, Generic[M]):
    """The socket: bytes and back-pressure."""

    transport: StreamTransport

    def __init__(self, reader: MessageReader[M], owner: WorkerOwner[M]) -> None:
        self._reader, self._owner = reader, owner
        self._closed = False

    def connectionMade(self) -> None:
        self.transport.registerProducer(self, True)

    def dataReceived(self, data: bytes) -> None:
        try:
            for message in self._reader.feed(data):
                if not self._closed:
                    self._owner.received(message)
        except ProtocolViolation as e:
            self._owner.lost(f"broke the protocol ({shorten(str(e), WORDS_LIMIT)})")

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._owner.lost()

    def pauseProducing(self) -> None:
        self._owner.blocked(True)

    def resumeProducing(self) -> None:
        self._owner.blocked(False)

    def stopProducing(self) -> None:
        """The connection is lost, which :meth:`connectionLost` tells too."""

    def close(self) -> None:
        self._closed = True
        self.transport.unregisterProducer()
        self.transport.abortConnection()


class _One(ServerFactory, Generic[M]):
    def __init__(self, protocol: _Stream[M]) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: IAddress | None) -> _Stream[M]:
        return self._protocol


class _Output(ProcessProtocol, Generic[M]):
    """The process's output, which it writes only on failure."""

    def __init__(self, owner: WorkerOwner[M]) -> None:
        self._owner, self._last = owner, Kept(4 * WORDS_LIMIT)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._last.feed(data)

    def processEnded(self, reason: Failure) -> None:
        lines = self._last.content.decode("utf-8", "replace").strip().splitlines()
        self._owner.ended(_how(reason), shorten(lines[-1], WORDS_LIMIT) if lines else "nothing was said")


def _how(reason: Failure) -> str:
    status, number = getattr(reason.value, "exitCode", None), getattr(reason.value, "signal", None)
    if number:
        return f"was ended by signal {signal.Signals(number).name}"
    return f"ended with status {status or 0}"
