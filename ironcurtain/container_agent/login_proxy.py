"""The way out of a container in which a person logs in: encrypted connections to the login's hosts, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IAddress, IHalfCloseableProtocol
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.client_hello import ClientHelloReader
from ironcurtain.http.head import HeadReader
from ironcurtain.mitm_proxy.connection import CONNECT_LIMIT, ConnectRequest, read_connect
from ironcurtain.mitm_proxy.undecrypted import ESTABLISHED
from ironcurtain.network.relay import Dialer, Splice
from ironcurtain.text.display import one_line

HTTPS_PORT = 443
"""The only port."""


class LoginProxy(Factory):
    """
    Accepts the connections of a program that logs in. What passes is not decrypted: it is between the program and the
    provider, and contains the tokens.

    :param hosts: which may be reached.
    :param tell: called with a sentence about each allowed connection that could not be made.
    """

    noisy = False
    log = Logger()

    def __init__(self, hosts: Collection[str], dialer: Dialer, tell: Callable[[str], None]) -> None:
        self.hosts, self.dialer, self.tell = hosts, dialer, tell
        self._open: set[_Connection] = set()

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """:returns: a new connection's protocol."""
        connection = _Connection(self, self._open.discard)
        self._open.add(connection)
        return connection

    def close(self) -> None:
        """Abort all connections."""
        for connection in list(self._open):
            connection.abort()


@implementer(IHalfCloseableProtocol)
class _Connection(Protocol):
    transport: Any

    def __init__(self, proxy: LoginProxy, ended: Callable[[_Connection], None]) -> None:
        self._proxy, self._ended, self._reader = proxy, ended, HeadReader(CONNECT_LIMIT)
        self._splice, self._hello, self._ahead = Splice(), ClientHelloReader(), b""
        self._dialling: Deferred[None] | None = None
        self._host = ""
        """To which it is connected."""
        self._tunnel = self._refused = False

    def dataReceived(self, data: bytes) -> None:
        if self._tunnel:
            self._splice.near.dataReceived(data)
            return
        if self._host:
            self._read_hello(data)
            return
        if self._refused or self._dialling is not None:
            self.abort()  # a client waits for the answer
            return
        try:
            if (found := self._reader.feed(data)) is None:
                return
            head, rest = found
            asked = read_connect(head)
        except ProtocolViolation as e:
            self._refuse(b"400 Bad Request", f"the request is not understood: {e.detail}")
            return
        if rest or not asked.consistent or asked.port != HTTPS_PORT or asked.host not in self._proxy.hosts:
            self._proxy.log.info("a login may not reach {host}", host=one_line(f"{asked.host}:{asked.port}"))
            self._refuse(b"403 Forbidden", f"a login reaches {', '.join(self._proxy.hosts)} only")
            return
        self._dialling = Deferred.fromCoroutine(self._connect(asked))
        self._dialling.addErrback(self._failed, asked)

    def readConnectionLost(self) -> None:
        if self._tunnel:
            self._splice.near.readConnectionLost()
        else:
            self.abort()

    def writeConnectionLost(self) -> None:
        pass

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._ended(self)
        if self._tunnel:
            self._splice.near.connectionLost(reason)
        elif self._dialling is not None:
            self._dialling.cancel()
            self._splice.reset()

    def abort(self) -> None:
        """Close at once, with what it is connected to."""
        self.transport.abortConnection()

    async def _connect(self, asked: ConnectRequest) -> None:
        await self._proxy.dialer.connect(asked.host, asked.port, self._splice.far)
        self._host = asked.host
        self.transport.write(ESTABLISHED)

    def _read_hello(self, data: bytes) -> None:
        """Nothing passes before the TLS handshake names the same host: one address can serve many."""
        self._ahead += data
        try:
            name = self._hello.feed(data)
        except ProtocolViolation as e:
            self._proxy.log.info("a login to {host} was ended: {why}", host=self._host, why=e.detail)
            self.abort()
            return
        if name is None:
            return
        if name != self._host:
            self._proxy.log.info("a login to {host} named {name}", host=self._host, name=one_line(name))
            self.abort()
            return
        self._tunnel = True
        self._splice.near.makeConnection(self.transport)
        self._splice.near.dataReceived(self._ahead)
        self._ahead = b""

    def _failed(self, failure: Failure, asked: ConnectRequest) -> None:
        if failure.check(CancelledError) is not None:
            return
        why = failure.getErrorMessage() or type(failure.value).__name__
        self._proxy.tell(f"{asked.host} cannot be reached: {why}")
        self._refuse(b"502 Bad Gateway", f"{asked.host} cannot be reached")

    def _refuse(self, status: bytes, why: str) -> None:
        self._refused = True
        body = f"IronCurtain: {why}\n".encode()
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(body)) + body)
        self.transport.loseConnection()
