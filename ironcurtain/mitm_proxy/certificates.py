"""Certificates: an authority's own, and those it makes for hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME: Final = timedelta(days=365)
"""How long a new authority holds (it is renewed without anybody's doing)."""

LEAF_LIFETIME: Final = timedelta(days=7)
"""How long a host's certificate holds (one is made in under a millisecond)."""

BACKDATED: Final = timedelta(days=1)
"""How far in the past certificates begin, for clocks that are behind ours."""

LEAF_NAME: Final = "IronCurtain MITM proxy"
"""Whom hosts' certificates name as their subject; the host stands in their alternative name, which alone counts."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A certificate that may sign others, and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class Leaf:
    """
    A host's certificate and its key, in the form that ``use_certificate`` and ``use_privatekey`` of pyOpenSSL take.

    The authority itself is not part of the chain to send: whoever trusts it has it.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


def new_key() -> ec.EllipticCurvePrivateKey:
    """:returns: a key on P-256: signing with it takes a tenth of the time of RSA, and every client takes it."""
    return ec.generate_private_key(ec.SECP256R1())


def new_authority(now: float) -> Signer:
    """:param now: seconds since the epoch."""
    key = new_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Two authorities must not share a name: clients look for the issuer by it.
    name = _name(f"IronCurtain {identifier.digest.hex()[:12]}")
    builder = (
        _builder(name, name, key, now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign_others=True), critical=True)
        .add_extension(identifier, critical=False)
    )
    return Signer(builder.sign(key, hashes.SHA256()), key)


def new_leaf(signer: Signer, key: ec.EllipticCurvePrivateKey, host: str, now: float) -> Leaf:
    """
    :param key: the host's; several hosts may share one.
    :param host: its name, ASCII.
    :param now: seconds since the epoch.
    :returns: a certificate that ends with the authority's, if not before.
    """
    builder = (
        _builder(_name(LEAF_NAME), signer.certificate.subject, key, now, _left(signer, now))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_others=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
    )
    return Leaf(builder.sign(signer.key, hashes.SHA256()), key)


def seconds_left(certificate: x509.Certificate, now: float) -> float:
    """:returns: how long a certificate still holds, zero if it does not hold yet."""
    if now < certificate.not_valid_before_utc.timestamp():
        return 0.0
    return certificate.not_valid_after_utc.timestamp() - now


def _left(signer: Signer, now: float) -> timedelta:
    return min(LEAF_LIFETIME, timedelta(seconds=seconds_left(signer.certificate, now)))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: float, lifetime: timedelta
) -> x509.CertificateBuilder:
    start = datetime.fromtimestamp(now, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + lifetime)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, sign_others: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_others,
        key_cert_sign=sign_others,
        crl_sign=sign_others,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
