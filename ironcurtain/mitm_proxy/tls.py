"""
TLS: bytes in, bytes out, and whose certificate the peer has. Nothing else here knows which library does it.

It is Twisted's ``TLSMemoryBIOProtocol``, put around a protocol by hand: ``startTLS`` would put around it a subclass
that holds small writes back until the reactor's next turn, which is wrong for a stream of small events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from OpenSSL import SSL
from service_identity.pyopenssl import verify_hostname, verify_ip_address
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IOpenSSLServerConnectionCreator,
    IProtocol,
    IReactorTime,
)
from twisted.internet.protocol import Factory
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from ironcurtain.errors import ConfigurationError
from ironcurtain.mitm_proxy.authority import Leaf
from ironcurtain.mitm_proxy.sending import PromptTransport, prompt

HTTP_1_1 = b"http/1.1"
"""The one protocol we speak, by its ALPN name; a peer that knows no ALPN is taken to speak it too."""


@implementer(IOpenSSLServerConnectionCreator)
class ServerSide:
    """
    Our side towards an agent that takes us for one host.

    :param leaf: gives that host's certificate, from our authority; another one once the last begins to be old.
    """

    def __init__(self, leaf: Callable[[], Leaf], clock: IReactorTime) -> None:
        self._leaf, self._used = leaf, leaf()
        self._context = _serving(self._used)
        self._factory = _factory(self, False, clock)

    def wrap(self, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """:returns: what takes the encrypted bytes for this protocol, whose transport it becomes."""
        return _PromptTLS(self._factory, protocol)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        if (leaf := self._leaf()) is not self._used:
            self._context, self._used = _serving(leaf), leaf
        return SSL.Connection(self._context, None)


@implementer(IOpenSSLClientConnectionCreator)
class ClientSide:
    """
    Our side towards a provider.

    :param host: a name or an address; the provider's certificate must be for it.
    :param ca_file: certificates (PEM) to trust besides the system's; empty for none.
    :raises ConfigurationError: that file cannot be used.
    """

    def __init__(self, host: str, ca_file: str, clock: IReactorTime) -> None:
        self._host, self._is_address = host, isIPAddress(host) or isIPv6Address(host)
        context = _context(SSL.TLS_CLIENT_METHOD)
        context.set_default_verify_paths()
        if ca_file:
            _trust(context, ca_file)
        context.set_verify(SSL.VERIFY_PEER)
        context.set_alpn_protos([HTTP_1_1])
        self._context = context
        self._factory = _factory(self, True, clock)

    def wrap(self, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """:returns: what takes the encrypted bytes for this protocol, whose transport it becomes."""
        return _PromptTLS(self._factory, protocol)

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        if not self._is_address:
            connection.set_tlsext_host_name(self._host.encode("ascii"))
        return connection

    def check_name(self, tls: TLSMemoryBIOProtocol) -> None:
        """
        The handshake verified the certificate's chain. Call this once it is done, before anything is sent.

        :raises service_identity.VerificationError: the certificate is for another host.
        :raises service_identity.CertificateError: it does not say for which.
        """
        (verify_ip_address if self._is_address else verify_hostname)(tls.getHandle(), self._host)


class _PromptTLS(TLSMemoryBIOProtocol):
    """Sends its records at once, but no goodbye when it is aborted: half a message must not seem to be whole."""

    def makeConnection(self, transport: Any) -> None:
        super().makeConnection(prompt(transport))

    def abortConnection(self) -> None:
        if isinstance(self.transport, PromptTransport):
            self.transport.drop_writes()
        super().abortConnection()


def server_name(tls: TLSMemoryBIOProtocol) -> str:
    """:returns: the host that the client wants to talk to (SNI), in lower case; empty if it did not say."""
    name: bytes | None = tls.getHandle().get_servername()
    return (name or b"").decode("latin-1").lower()


def _context(method: int) -> SSL.Context:
    context = SSL.Context(method)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_COMPRESSION)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)  # an idle connection needs no memory for records
    return context


def _serving(leaf: Leaf) -> SSL.Context:
    context = _context(SSL.TLS_SERVER_METHOD)
    context.use_certificate(leaf.certificate)
    context.use_privatekey(leaf.key)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)  # the client keeps its session, in a ticket
    context.set_alpn_select_callback(_choose)
    return context


def _factory(side: ServerSide | ClientSide, is_client: bool, clock: IReactorTime) -> TLSMemoryBIOFactory:
    factory = TLSMemoryBIOFactory(side, is_client, Factory(), clock)
    factory.protocol = _PromptTLS
    return factory


def _choose(connection: SSL.Connection, offered: list[bytes]) -> bytes | SSL._NoOverlappingProtocols:
    return HTTP_1_1 if HTTP_1_1 in offered else SSL.NO_OVERLAPPING_PROTOCOLS


def _trust(context: SSL.Context, ca_file: str) -> None:
    try:
        context.load_verify_locations(ca_file)
    except SSL.Error:
        raise ConfigurationError(ca_file, "cannot be read, or holds no PEM certificate", field="ca_file") from None
