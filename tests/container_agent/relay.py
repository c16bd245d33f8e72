"""Stands between a test and the Docker Engine, which seems to stop and to start again when the relay does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import UNIXClientEndpoint, UNIXServerEndpoint, connectProtocol
from twisted.internet.interfaces import IHalfCloseableProtocol, IListeningPort
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from tests import engine


class Relay:
    """
    :param path: of the socket at which it is reached.
    :ivar mute: whether it takes what it is sent, and nothing comes back.
    """

    def __init__(self, reactor: Any, path: Path) -> None:
        self.reactor, self.path, self.mute = reactor, path, False
        self.open: set[_Half] = set()
        self._port: IListeningPort | None = None

    async def start(self) -> None:
        """The Engine answers."""
        factory = Factory.forProtocol(lambda: _Half(self))
        self._port = await UNIXServerEndpoint(self.reactor, str(self.path)).listen(factory)

    async def stop(self) -> None:
        """The Engine is gone, with all its connections."""
        if self._port is not None:
            port, self._port = self._port, None
            await maybeDeferred(port.stopListening)
            if self.path.exists():
                os.unlink(self.path)
        lost = [half.lost for half in self.open]
        for half in list(self.open):
            half.transport.abortConnection()  # type: ignore[union-attr]
        for each in lost:
            await each


@implementer(IHalfCloseableProtocol)
class _Half(Protocol):
    def __init__(self, relay: Relay, other: _Half | None = None) -> None:
        self._relay, self._other, self._waiting = relay, other, b""
        self.lost: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        self._relay.open.add(self)
        if self._other is None and not self._relay.mute:
            endpoint = UNIXClientEndpoint(self._relay.reactor, engine.engine())
            connectProtocol(endpoint, _Half(self._relay, self)).addCallbacks(self._joined, lambda _: None)

    def dataReceived(self, data: bytes) -> None:
        if self._other is None:
            self._waiting += data
        elif self._other.transport is not None:
            self._other.transport.write(data)

    def readConnectionLost(self) -> None:
        """One direction ends before the other."""
        if self._other is not None and self._other.transport is not None:
            self._other.transport.loseWriteConnection()  # type: ignore[attr-defined]

    def writeConnectionLost(self) -> None:
        """We have ended the other one."""

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._relay.open.discard(self)
        if self._other is not None and self._other.transport is not None:
            self._other.transport.loseConnection()
        self.lost.callback(None)

    def _joined(self, other: _Half) -> None:
        self._other = other
        other.transport.write(self._waiting)  # type: ignore[union-attr]
        if self.lost.called:
            other.transport.abortConnection()  # type: ignore[union-attr]
