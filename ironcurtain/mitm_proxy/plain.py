"""Our side towards a gateway on this machine, without TLS: for whoever uses a connection it is as with TLS."""

from __future__ import annotations

import typing
from typing import Any

from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Factory
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory


class Side(typing.Protocol):
    """Our side of the connections to one provider."""

    def wrap(self, protocol: Any) -> Any:
        """:returns: what takes the bytes of the connection for this protocol, whose transport it becomes."""


class PlainSide:
    """Our side without TLS. Who is at a loopback address can only be named by the one who configured it."""

    def __init__(self) -> None:
        self._factory: WrappingFactory[_Plain] = WrappingFactory(Factory())

    def wrap(self, protocol: Any) -> ProtocolWrapper:
        """See :class:`Side`."""
        return _Plain(self._factory, protocol)


class _Plain(ProtocolWrapper):
    """Passes everything on, and says at once that the handshake is over."""

    def makeConnection(self, transport: Any) -> None:
        super().makeConnection(transport)
        IHandshakeListener(self.wrappedProtocol).handshakeCompleted()
