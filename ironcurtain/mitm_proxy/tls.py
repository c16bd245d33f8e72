"""
Both sides of TLS, which is Twisted's: towards the agent, who takes us for a provider, and towards the provider.

``abortConnection`` of Twisted's TLS says goodbye (``close_notify``) before it aborts, and then half a message may seem
to be whole. So whoever has to break a connection off aborts the transport below: ``transport.transport``.
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
    """Makes what writes at once: Twisted's default gathers small writes, which events of a stream are."""

    protocol = TLSMemoryBIOProtocol
    noisy = False


class ServerSide:
    """
    Our side towards an agent that takes us for one host: TLS 1.2 or newer, nothing compressed, no renegotiation.

    :param leaf: gives that host's certificate, from our authority; another one once the last begins to be old.
    """

    def __init__(self, leaf: Callable[[], Leaf]) -> None:
        self._leaf, self._used = leaf, leaf()
        self._factory = _serving(self._used)

    def wrap(self, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """:returns: what takes the encrypted bytes for this protocol, whose transport it becomes."""
        if (leaf := self._leaf()) is not self._used:
            self._factory, self._used = _serving(leaf), leaf
        return TLSMemoryBIOProtocol(self._factory, protocol)


class ClientSide:
    """
    Our side towards a provider. The handshake fails unless the provider's certificate is valid, and for this host.

    :param host: a name or an address.
    :param ca_file: certificates (PEM) to trust besides the system's; empty for none.
    :raises ConfigurationError: that file cannot be used.
    """

    def __init__(self, host: str, ca_file: str) -> None:
        creator = VerifyingPolicy(ca_file).creatorForNetloc(host.encode("ascii"), 443)
        self._factory = _TLSFactory(creator, True, Factory())

    def wrap(self, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """:returns: what takes the encrypted bytes for this protocol, whose transport it becomes."""
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
