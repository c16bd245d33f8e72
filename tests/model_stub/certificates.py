"""A certificate authority made in memory, and server certificates from it, strict enough for every client we know."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL import SSL
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


@dataclass(frozen=True)
class Authority:
    """An EC P-256 authority that lives for a day."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, name: str = "IronCurtain model stub") -> Authority:
        """:returns: a new authority with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _blank(_named(name), _named(name), key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> bytes:
        """The authority's certificate, to be trusted by clients."""
        return self.certificate.public_bytes(Encoding.PEM)

    def server(self, *names: str) -> ServerTLS:
        """:returns: a server's side of TLS, with a new certificate for these host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _blank(_named(names[0]), self.certificate.subject, key.public_key())
        alternatives = x509.SubjectAlternativeName([_general(name) for name in names])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(alternatives, critical=False).add_extension(issuer, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        return ServerTLS(key, builder.sign(self.key, hashes.SHA256()))


@implementer(IOpenSSLServerConnectionCreator)
class ServerTLS:
    """
    Twisted's own ``PrivateCertificate`` would do, but it hands pyOpenSSL what that has deprecated.

    :param key: of the certificate.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._context = SSL.Context(SSL.TLS_SERVER_METHOD)
        self._context.use_certificate(certificate)
        self._context.use_privatekey(key)

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return SSL.Connection(self._context, None)


def _blank(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
