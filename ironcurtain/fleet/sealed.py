"""
TLS 1.3 between two members, inside the streams of the fleet: the carrier sees and changes nothing.

Both sides show a certificate of the key that signs their audit logs. It is compared with the key in ``fleet.trust``;
names, dates and authorities mean nothing, so that no clock is needed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from OpenSSL import SSL
from OpenSSL.crypto import X509
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IOpenSSLServerConnectionCreator,
    IProtocol,
)
from twisted.internet.protocol import Factory
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from zope.interface import implementer

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.http.trust import tls_context

_ALWAYS = datetime.datetime(2000, 1, 1), datetime.datetime(9999, 12, 31)
"""The dates of certificates, which nobody checks."""


class Sealing:
    """
    Makes the TLS of this host.

    :param name: of this host.
    :param trust: returns whom it believes now.
    """

    def __init__(self, name: str, key: SigningKey, trust: Callable[[], Trust]) -> None:
        self._trust = trust
        shown = _certificate(name, key), key.for_tls()
        self._client, self._server = (
            _context(method, *shown) for method in (SSL.TLS_CLIENT_METHOD, SSL.TLS_SERVER_METHOD)
        )

    def towards(self, host: Host, protocol: IProtocol) -> TLSMemoryBIOProtocol:
        """
        :returns: the TLS around a protocol, for a stream that is opened to a host. It fails unless that host answers.
        """
        return _Sealed(_factory(_Creator(self._client), True), protocol, lambda key: key == host.key)

    def accepting(self, host: str, protocol: IProtocol) -> TLSMemoryBIOProtocol | None:
        """
        :param host: what the other side claims to be.
        :returns: the TLS around a protocol, for a stream that it opens, which fails unless that is so; ``None``: that
            host is not trusted.
        """

        def believed(key: bytes) -> bool:
            known = self._trust().host_of(key)
            return known is not None and known.name == host

        if host not in self._trust().hosts:
            return None
        return _Sealed(_factory(_Creator(self._server), False), protocol, believed)


def peer_key(transport: Any) -> bytes | None:
    """:returns: the public key that the other side of a TLS transport has proved to have."""
    certificate = transport.getPeerCertificate()
    return None if certificate is None else public_key(certificate)


def public_key(certificate: X509) -> bytes | None:
    """:returns: the Ed25519 key of a certificate; ``None`` if it has another."""
    try:
        key = certificate.to_cryptography().public_key()
    except ValueError:
        return None
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw) if isinstance(key, Ed25519PublicKey) else None


def _context(method: int, certificate: x509.Certificate, key: Ed25519PrivateKey) -> SSL.Context:
    """:returns: the settings of all streams; whose key each believes is with its protocol."""
    context = tls_context(method)
    context.set_min_proto_version(SSL.TLS1_3_VERSION)
    context.set_options(SSL.OP_NO_TICKET)  # each stream proves both keys anew
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.use_certificate(certificate)
    context.use_privatekey(key)
    context.set_verify(
        SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT,
        lambda connection, certificate, error, depth, valid: (
            depth == 0 and connection.get_app_data().believed(public_key(certificate) or b"")
        ),
    )
    return context


def _certificate(name: str, key: SigningKey) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begins, ends = _ALWAYS
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).serial_number(1)
    made = made.not_valid_before(begins).not_valid_after(ends)
    return key.certify(made)


class _Sealed(TLSMemoryBIOProtocol):
    """:ivar believed: returns whether the other side may have a key."""

    def __init__(self, factory: TLSMemoryBIOFactory, inner: IProtocol, believed: Callable[[bytes], bool]) -> None:
        super().__init__(factory, inner)
        self.believed = believed

    def loseConnection(self) -> None:
        """End once everything was written, also if a producer is registered: as sockets do."""
        self.unregisterProducer()
        super().loseConnection()

    def loseWriteConnection(self) -> None:
        """End both directions: TLS here has no other end."""
        self.loseConnection()


@implementer(IOpenSSLClientConnectionCreator, IOpenSSLServerConnectionCreator)
class _Creator:
    def __init__(self, context: SSL.Context) -> None:
        self._context = context

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return self._connection(tlsProtocol)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return self._connection(tlsProtocol)

    def _connection(self, protocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        made = SSL.Connection(self._context, None)
        made.set_app_data(protocol)
        return made


def _factory(creator: _Creator, client: bool) -> TLSMemoryBIOFactory:
    factory = TLSMemoryBIOFactory(creator, client, Factory())
    factory.noisy = False
    return factory
