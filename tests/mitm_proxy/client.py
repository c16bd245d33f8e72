"""An agent that does what a test says, byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from OpenSSL import SSL
from OpenSSL.crypto import X509
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from tests.mitm_proxy.messages import HOST
from tests.mitm_proxy.waiting import the_reactor, until


class _Bytes(Protocol):
    """What one side of a connection has got."""

    transport: Any

    def __init__(self) -> None:
        self.got = bytearray()
        self.lost: Failure | None = None

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost = reason


@implementer(IOpenSSLClientConnectionCreator)
class _Trusting:
    def __init__(self, pem: bytes, name: str, alpn: Sequence[bytes]) -> None:
        self._context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        store = self._context.get_cert_store()
        assert store is not None
        store.add_cert(X509.from_cryptography(x509.load_pem_x509_certificate(pem)))
        self._context.set_verify(SSL.VERIFY_PEER)
        if alpn:
            self._context.set_alpn_protos(list(alpn))
        self._name = name
        self.session: Any = None

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        if self._name:
            connection.set_tlsext_host_name(self._name.encode())
        if self.session is not None:
            connection.set_session(self.session)
        return connection


class Client:
    """
    An agent's connection, which says whatever a test wants.

    :param certificate: of the authority to trust, as PEM.
    """

    def __init__(self, socket: Path, certificate: bytes) -> None:
        self._socket, self._certificate = socket, certificate
        self.plain = _Bytes()
        self.inner: Any = self.plain
        self.tls: Any = None

    async def connect(self) -> Client:
        """Open the connection."""
        await connectProtocol(UNIXClientEndpoint(the_reactor, str(self._socket)), self.plain)
        return self

    async def tunnel(
        self, authority: str = f"{HOST}:443", name: str = HOST, alpn: Sequence[bytes] = (), session: Any = None
    ) -> Client:
        """CONNECT and the TLS handshake, with this name in it."""
        self.plain.transport.write(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
        await until(lambda: b"\r\n\r\n" in self.plain.got, "the answer to CONNECT")
        assert self.plain.got.startswith(b"HTTP/1.1 200"), self.plain.got
        self.inner = _Bytes()
        creator = _Trusting(self._certificate, name, alpn)
        creator.session = session
        factory = TLSMemoryBIOFactory(creator, True, Factory(), the_reactor)
        self.tls = TLSMemoryBIOProtocol(factory, self.inner)
        plain: Any = self.plain
        plain.dataReceived, plain.connectionLost = self.tls.dataReceived, self.tls.connectionLost
        self.tls.makeConnection(self.plain.transport)
        await until(lambda: self.tls._handshakeDone or self.inner.lost, "the TLS handshake")
        return self

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.inner.transport.write(data)

    @property
    def got(self) -> bytearray:
        """What came and was not taken by :meth:`response`."""
        got: bytearray = self.inner.got
        return got

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        """:returns: status, headers and body of the next response."""
        await until(lambda: b"\r\n\r\n" in self.got or self.inner.lost, "a response")
        head, _, rest = self.got.partition(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(line.split()[1])
        if status < 200:
            self.inner.got = rest
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            await until(lambda: self.got.endswith(b"0\r\n\r\n") or self.inner.lost, "the last chunk")
            body = _dechunked(bytes(self.got.partition(b"\r\n\r\n")[2]))
            self.inner.got = bytearray()
            return status, headers, body
        size = int(headers.get("content-length", "0"))
        await until(lambda: len(self.got) >= len(head) + 4 + size or self.inner.lost, "the body")
        body = bytes(self.got[len(head) + 4 :][:size])
        del self.got[: len(head) + 4 + size]
        return status, headers, body

    async def closed(self) -> None:
        """Wait until the proxy has closed the connection."""
        await until(lambda: self.inner.lost, "the end of the connection")

    def unsent(self) -> int:
        """:returns: how many bytes wait to be read by the proxy."""
        transport = self.plain.transport
        return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)

    def close(self) -> None:
        """End the connection."""
        if self.inner.lost is None:
            self.plain.transport.abortConnection()


def _dechunked(data: bytes) -> bytes:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body += data[:length]
        assert data[length : length + 2] == b"\r\n", data
        data = data[length + 2 :]
    return body
