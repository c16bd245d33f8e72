"""An upstream proxy for tests: it makes tunnels to ports of this machine, or answers what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import SSL4ServerEndpoint, TCP4ClientEndpoint, TCP4ServerEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from tests.model_stub.certificates import Authority

the_reactor: Any = _reactor

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
WANTS_BASIC = b'HTTP/1.1 407 Denied\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n'


class ProxyStub:
    """
    A proxy on a loopback port.

    :param ports: the port of this machine for each host.
    :ivar heads: all requests.
    :ivar answer: returns the response to a request; empty for a tunnel, ``None`` for silence.
    """

    def __init__(self, ports: Mapping[str, int] = {}) -> None:
        self.ports, self.heads = dict(ports), list[str]()
        self.answer: Callable[[str], bytes | None] = lambda head: b""
        self.authority = Authority.make("proxy under test")
        self.connections: list[_Client] = []
        self._port: Any = None

    async def start(self, *names: str) -> int:
        """
        :param names: of a certificate; none: without TLS.
        :returns: the port.
        """
        server: Any = TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1")
        if names:
            server = SSL4ServerEndpoint(the_reactor, 0, self.authority.server(*names), interface="127.0.0.1")
        self._port = await server.listen(Factory.forProtocol(lambda: _Client(self)))
        return int(self._port.getHost().port)

    async def stop(self) -> None:
        """Close everything."""
        await self._port.stopListening()
        for client in self.connections:
            if not client.lost.called:
                client.transport.abortConnection()
            await client.lost


class _Client(Protocol):
    transport: Any

    def __init__(self, proxy: ProxyStub) -> None:
        self._proxy, self._got = proxy, b""
        self.far: Any = None
        self.lost: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        self._proxy.connections.append(self)

    def dataReceived(self, data: bytes) -> None:
        if self.far is not None:
            self.far.transport.write(data)
            return
        self._got += data
        if b"\r\n\r\n" in self._got:
            head, self._got = self._got.decode(), b""
            self._proxy.heads.append(head)
            if (answer := self._proxy.answer(head)) == b"":
                self._connect(head.split(" ")[1].rpartition(":")[0])
            elif answer is not None:
                self.transport.write(answer)

    def _connect(self, host: str) -> None:
        way = TCP4ClientEndpoint(the_reactor, "127.0.0.1", self._proxy.ports[host])
        connectProtocol(way, _Far(self)).addErrback(lambda _: self.transport.write(b"HTTP/1.1 502 Bad\r\n\r\n"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.far is not None:
            self.far.transport.abortConnection()
        self.lost.callback(None)


class _Far(Protocol):
    transport: Any

    def __init__(self, client: _Client) -> None:
        self._client = client

    def connectionMade(self) -> None:
        self._client.far = self
        self._client.transport.write(OPENED)

    def dataReceived(self, data: bytes) -> None:
        self._client.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._client.transport.loseConnection()
