"""A registry on this machine that lies: it answers what a test says, byte for byte."""

from __future__ import annotations

import gzip
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, ServerFactory


def response(body: bytes = b"", *headers: str, status: int = 200) -> bytes:
    """:returns: a complete response."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def gzipped(body: bytes) -> bytes:
    """:returns: a complete response, compressed."""
    return response(gzip.compress(body), "Content-Encoding: gzip")


class LyingRegistry(ServerFactory):
    """
    :ivar answers: by path; others are answered 404.
    :ivar heads: of all requests.
    :ivar endless: repeated without end after the answer with the path, while the client takes it.
    """

    noisy = False

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.endless: dict[str, bytes] = {}
        self.heads: list[str] = []
        self.connections: list[_Connection] = []
        self._port: Any = reactor.listenTCP(0, self, interface="127.0.0.1")

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port.getHost().port}"

    def buildProtocol(self, addr: object) -> Protocol:
        connection = _Connection(self)
        self.connections.append(connection)
        return connection

    async def stop(self) -> None:
        """Stop listening, and drop all connections."""
        await self._port.stopListening()
        for connection in self.connections:
            if connection.connected:
                connection.transport.abortConnection()
                await connection.lost


class _Connection(Protocol):
    transport: Any

    def __init__(self, registry: LyingRegistry) -> None:
        self._registry, self._data, self._endless = registry, b"", b""
        self.lost: Deferred[None] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        self._data += data
        if not self._data.startswith(b"GET "[: len(self._data)]):
            self.transport.abortConnection()
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            self._registry.heads.append(head.decode("latin-1"))
            path = head.split(b" ")[1].decode("latin-1")
            self.transport.write(self._registry.answers.get(path) or response(status=404))
            if path in self._registry.endless:
                self._endless = self._registry.endless[path]
                self.transport.registerProducer(self, False)

    def resumeProducing(self) -> None:
        """Send more."""
        self.transport.write(self._endless)

    def stopProducing(self) -> None:
        """The client is gone."""

    def connectionLost(self, reason: object = None) -> None:
        self.connected = 0
        self.lost.callback(None)
