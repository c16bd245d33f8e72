"""Our side towards a gateway on this machine, without TLS: for whoever uses a connection it is as with TLS."""

from __future__ import annotations

import typing
from typing import Any

from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure


class Side(typing.Protocol):
    """Our side of the connections to one provider."""

    def wrap(self, protocol: Any) -> Any:
        """:returns: what takes the bytes of the connection for this protocol, whose transport it becomes."""


class PlainSide:
    """Our side without TLS. Who is at a loopback address can only be named by the one who configured it."""

    def wrap(self, protocol: Protocol) -> Protocol:
        """See :class:`Side`."""
        return _Plain(protocol)


class _Plain(Protocol):
    """Passes everything on, and says at once that the handshake is over."""

    def __init__(self, above: Protocol) -> None:
        self._above = above

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)  # as Twisted's own wrappers of transports do

    def makeConnection(self, transport: Any) -> None:
        super().makeConnection(transport)
        self._above.makeConnection(self)
        IHandshakeListener(self._above).handshakeCompleted()

    def dataReceived(self, data: bytes) -> None:
        self._above.dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._above.connectionLost(reason)
