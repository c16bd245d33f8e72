"""
Both sides of TLS, using Twisted's: to the agent, which takes the proxy for a provider, and to the provider.

``abortConnection`` of Twisted's TLS sends ``close_notify`` before it aborts, so that a truncated message may seem to be
complete. To break off a connection, abort the transport below: ``transport.transport``.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from OpenSSL import SSL
from twisted.internet.interfaces import IHandshakeListener, IOpenSSLServerConnectionCreator, IProtocol
from twisted.internet.protocol import Factory
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from ironcurtain.http.trust import HTTP_1_1, VerifyingPolicy, tls_context
from ironcurtain.mitm_proxy.authority import Leaf


class _TLSFactory(TLSMemoryBIOFactory):
    """Creates protocols that write at once. Twisted's default collects small writes, such as events of a stream."""

    protocol = TLSMemoryBIOProtocol
    noisy = False


class ServerSide:
    """
    TLS towards an agent, with the certificate of one host: TLS 1.2 or newer, no compression, no renegotiation.

    :param leaf: returns a certificate for that host from the authority, a new one when the last becomes old.
    """

    def __init__(self, leaf: Callable[[], Leaf]) -> None:
        self._leaf, self._used = leaf, leaf()
        self._factory = _serving(self._used)

    def wrap(self, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """:returns: the TLS protocol around this protocol; it becomes its transport."""
        if (leaf := self._leaf()) is not self._used:
            self._factory, self._used = _serving(leaf), leaf
        return TLSMemoryBIOProtocol(self._factory, protocol)


def server_name(transport: Any) -> str:
    """:returns: the host that an agent named in its TLS handshake (SNI), in lower case; empty if none."""
    return (transport.getHandle().get_servername() or b"").decode("ascii", "replace").lower()


class ClientSide:
    """
    TLS towards a provider. The handshake fails unless the provider's certificate is valid for this host.

    :param host: a name or an address.
    :param ca_file: PEM certificates to trust besides the system's; empty for none.
    :raises ConfigurationError: that file cannot be used.
    """

    def __init__(self, host: str, ca_file: str) -> None:
        creator = VerifyingPolicy(ca_file).creatorForNetloc(host.encode("ascii"), 443)
        self._factory = _TLSFactory(creator, True, Factory())

    def wrap(self, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """:returns: the TLS protocol around this protocol; it becomes its transport."""
        return TLSMemoryBIOProtocol(self._factory, protocol)


@implementer(IOpenSSLServerConnectionCreator)
class _Creator:
    def __init__(self, leaf: Leaf) -> None:
        self._context = tls_context(SSL.TLS_SERVER_METHOD)
        self._context.use_certificate(leaf.certificate)
        self._context.use_privatekey(leaf.key)
        self._context.set_alpn_select_callback(_choose)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return SSL.Connection(self._context, None)


def _choose(connection: SSL.Connection, offered: list[bytes]) -> Any:
    return HTTP_1_1 if HTTP_1_1 in offered else SSL.NO_OVERLAPPING_PROTOCOLS


def _serving(leaf: Leaf) -> TLSMemoryBIOFactory:
    return _TLSFactory(_Creator(leaf), False, Factory())


class Side(typing.Protocol):
    """The proxy's side of the connections to one provider."""

    def wrap(self, protocol: Any) -> Any:
        """:returns: the protocol to connect, which becomes this protocol's transport."""


class PlainSide:
    """A connection without TLS, for configured gateways on a loopback address."""

    def __init__(self) -> None:
        self._factory: WrappingFactory[_Plain] = WrappingFactory(Factory())

    def wrap(self, protocol: Any) -> ProtocolWrapper:
        """See :class:`Side`."""
        return _Plain(self._factory, protocol)


class _Plain(ProtocolWrapper):
    """Passes everything on, and reports at once that the handshake is complete."""

    def makeConnection(self, transport: Any) -> None:
        super().makeConnection(transport)
        IHandshakeListener(self.wrappedProtocol).handshakeCompleted()
