"""The two ends of a shared terminal for ``terminal.py``: viewers that count, and output that comes over a socket."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.python.failure import Failure

from ironcurtain.container.streams import EngineStream, Receiver
from ironcurtain.services.stream import adopt


class Viewer:
    """A person's end that counts what is drawn, and tells when something is."""

    def __init__(self) -> None:
        self.size = 0
        self.stalled = False
        self.drawn: Deferred[None] = Deferred()

    def draw(self, data: bytes) -> bool:
        """Take bytes."""
        self.size += len(data)
        if not self.drawn.called:
            self.drawn.callback(None)
        return not self.stalled

    def hold(self, full: bool) -> None:
        """Nothing to hold."""

    def ended(self, reason: str, status: int | None) -> None:
        """Nothing to end."""


class Source(Protocol):
    """Output that comes over a socket, as the Engine's does; a stream without a program that reads."""

    owner: Any
    transport: Any

    def __init__(self) -> None:
        self.done: Deferred[None] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        """Give it on."""
        self.owner.received(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """All has come."""
        self.done.callback(None)

    def write(self, data: bytes) -> None:
        """Nobody reads it."""

    def pause(self) -> None:
        """Give no more for now."""
        self.transport.pauseProducing()

    def resume(self) -> None:
        """Give more."""
        self.transport.resumeProducing()

    def resize(self, columns: int, rows: int) -> None:
        """It has no size."""

    def close(self) -> None:
        """It ends by itself."""


class OneContainer:
    """
    In place of an Engine: a container that is attached to is the other end of a socket.

    :param connection: who has its other end says what the Engine would say.
    """

    stream: EngineStream

    def __init__(self, reactor: Any, connection: socket.socket) -> None:
        self.clock, self._connection = reactor, connection

    async def attach(self, container: str, receive: Receiver) -> EngineStream:
        """:returns: the connection."""
        self.stream = EngineStream("/attach", b"", "", True, receive, "bench")
        await adopt(self._connection, self.stream)
        return self.stream


class Dropped:
    """The owner of a stream that nobody looks at: the floor."""

    def received(self, data: bytes) -> None:
        """Drop it."""


class One(ServerFactory):
    """Gives its one protocol to the connection."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: Any) -> Protocol:
        """:returns: it."""
        return self._protocol
