"""
The servers that a TLS client trusts: the system's certificate authorities, and those of a given file.

All clients use this: treq and the MITM proxy, with Twisted's TLS, and the MCP SDK, which takes a context of the
standard library. Names are verified by service-identity, or by the standard library.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from OpenSSL import SSL
from OpenSSL.crypto import X509
from service_identity.pyopenssl import verify_hostname, verify_ip_address
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.user_paths import user_path

HTTP_1_1 = b"http/1.1"
"""The ALPN name of the only supported protocol. A peer without ALPN is assumed to use it, too."""

_BEGIN = b"-----BEGIN CERTIFICATE-----"

_UNKNOWN = "it comes from an authority that this system does not know"
_REASONS = {9: "it is not valid yet", 10: "it has expired", 23: "it was revoked"}
"""By OpenSSL's error numbers (``X509_V_ERR_...``, x509_vfy.h)."""


class InvalidCertificate(SSL.Error):
    """
    A server's certificate is not valid.

    :param reason: for people, as in "the certificate is not valid: ...".
    """

    def __init__(self, reason: str) -> None:
        # In the form of all OpenSSL errors, which Twisted parses.
        super().__init__([("SSL routines", "", f"certificate verify failed: {reason}")])
        self.reason = reason


@implementer(IPolicyForHTTPS)
class VerifyingPolicy:
    """
    The policy with which treq and the MITM proxy verify servers.

    :param ca_file: path of a PEM file with one or more certificates; empty for none.
    :raises ConfigurationError: the file cannot be read or has no certificate.
    """

    def __init__(self, ca_file: str) -> None:
        self._extra = _certificates(ca_file) if ca_file else ()

    def creatorForNetloc(self, hostname: bytes, port: int) -> IOpenSSLClientConnectionCreator:
        """:returns: a creator of connections whose handshake fails unless the certificate is valid for this host."""
        return _Creator(hostname.decode("ascii"), self._extra)


def tls_context(method: int) -> SSL.Context:
    """
    :param method: ``SSL.TLS_CLIENT_METHOD`` or ``SSL.TLS_SERVER_METHOD``.
    :returns: a context for TLS 1.2 or newer, without compression and renegotiation; idle connections keep no buffers.
    """
    context = SSL.Context(method)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)
    return context


@implementer(IOpenSSLClientConnectionCreator)
class _Creator:
    def __init__(self, host: str, extra: Sequence[Certificate]) -> None:
        self._host, self._is_address = host, isIPAddress(host) or isIPv6Address(host)
        self._context = tls_context(SSL.TLS_CLIENT_METHOD)
        self._context.set_alpn_protos([HTTP_1_1])
        self._context.set_default_verify_paths()
        store = self._context.get_cert_store()
        assert store is not None  # a context always has one
        for certificate in extra:
            store.add_cert(certificate.original)
        self._context.set_verify(SSL.VERIFY_PEER, _verify)
        self._context.set_info_callback(self._identify)

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        connection.set_app_data(tlsProtocol)
        if not self._is_address:
            connection.set_tlsext_host_name(self._host.encode("ascii"))
        return connection

    def _identify(self, connection: SSL.Connection, where: int, _: int) -> None:
        """Check after the handshake, before anything is sent, that the certificate is this host's."""
        if where & SSL.SSL_CB_HANDSHAKE_DONE:
            try:
                (verify_ip_address if self._is_address else verify_hostname)(connection, self._host)
            except Exception:  # OpenSSL would swallow an exception: fail closed
                connection.get_app_data().failVerification(Failure())


def _verify(connection: SSL.Connection, certificate: X509, error: int, depth: int, valid: int) -> bool:
    if not valid:
        raise InvalidCertificate(_REASONS.get(error, _UNKNOWN))  # pyOpenSSL raises it where the handshake is called
    return True


def ssl_context(ca_file: str) -> ssl.SSLContext:
    """
    :param ca_file: as for :class:`VerifyingPolicy`.
    :returns: a client context of the standard library, TLS 1.2 or newer.
    :raises ConfigurationError: that file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies certificates and names
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.set_default_verify_paths()
    if ca_file:
        pem = b"".join(certificate.dumpPEM() for certificate in _certificates(ca_file))
        context.load_verify_locations(cadata=pem.decode("ascii"))
    return context


def _certificates(path: str) -> Sequence[Certificate]:
    try:
        with open(user_path(path), "rb") as file:
            _, *found = file.read().split(_BEGIN)
        certificates = [Certificate.loadPEM(_BEGIN + pem) for pem in found]
    except OSError as e:
        raise ConfigurationError(path, f"cannot be read: {e.strerror}", field="ca_file") from None
    except Exception as e:  # what OpenSSL raises here has no public base class
        raise ConfigurationError(path, f"contains a certificate that is not PEM: {e}", field="ca_file") from None
    if not certificates:
        raise ConfigurationError(path, "contains no PEM certificate", field="ca_file")
    return certificates
