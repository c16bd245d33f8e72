"""A provider that does what a test says, byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from tests.mitm_proxy.waiting import the_reactor, until
from tests.model_stub.certificates import Authority


class Origin(Protocol):
    """One connection of the proxy to the provider: it keeps what comes, and sends what the test says."""

    transport: Any

    def __init__(self, server: OriginServer) -> None:
        self._server = server
        self.got = bytearray()
        self.lost: Failure | None = None

    def connectionMade(self) -> None:
        self._server.connections.append(self)
        self.transport.setTcpNoDelay(True)

    def dataReceived(self, data: bytes) -> None:
        self.got += data
        self._server.heard(self, data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost = reason

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.transport.write(data)

    @property
    def unsent(self) -> int:
        """How many bytes wait to be read by the proxy."""
        transport = self.transport.transport
        return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)

    def close(self) -> None:
        """End the connection properly."""
        self.transport.loseConnection()

    def abort(self) -> None:
        """Cut the connection."""
        self.transport.abortConnection()


class OriginServer:
    """
    An HTTPS server on a loopback port.

    :ivar answer: called with each connection and all it has got, whenever more comes.
    """

    def __init__(self) -> None:
        self.authority = Authority.make("origin under test")
        self.connections: list[Origin] = []
        self.answer: Callable[[Origin], None] = lambda origin: None
        self._port: Any = None

    async def start_plain(self) -> int:
        """:returns: the port, which is spoken to without TLS."""
        endpoint = TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1")
        self._port = await endpoint.listen(Factory.forProtocol(lambda: Origin(self)))
        return int(self._port.getHost().port)

    async def start(self, *names: str) -> int:
        """:returns: the port."""
        factory = Factory.forProtocol(lambda: Origin(self))
        endpoint = SSL4ServerEndpoint(the_reactor, 0, self.authority.server(*names), interface="127.0.0.1")
        self._port = await endpoint.listen(factory)
        return int(self._port.getHost().port)

    def heard(self, origin: Origin, data: bytes) -> None:
        """Something came."""
        self.answer(origin)

    @property
    def got(self) -> bytes:
        """Everything that was ever sent here."""
        return b"".join(origin.got for origin in self.connections)

    async def stop(self) -> None:
        """Close everything."""
        await self._port.stopListening()
        for origin in self.connections:
            if origin.lost is None:
                origin.abort()
        await until(lambda: all(origin.lost is not None for origin in self.connections), "the origin's connections")
