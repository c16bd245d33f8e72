"""
The certificate authority of a home: made once, kept in a file, made anew before it expires.

Agents' containers trust it, and nobody else does. Its key never leaves this machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.home.layout import private_directory

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


RENEWED_BEFORE: Final = 30 * 86400.0
"""Seconds before its end at which an authority is replaced for new sessions; running ones keep theirs."""

FILE_LIMIT: Final = 64 * 1024
"""Most bytes of the authority's file that are read."""

__all__ = ["Authority", "Leaf"]


class Authority:
    """
    :param signer: the authority's certificate and key.
    :param certificate_path: a file with the certificate alone.
    :param now: gives seconds since the epoch.
    """

    def __init__(self, signer: Signer, certificate_path: Path, now: Callable[[], float]) -> None:
        self._signer, self._now = signer, now
        self.certificate_path = certificate_path
        """The certificate in a file, which may hold another process's newer one: give sessions the bytes instead."""
        self.certificate_pem = signer.certificate.public_bytes(Encoding.PEM)
        """What a container has to trust."""
        self._leaf_key = new_key()
        self._leaves: dict[str, Leaf] = {}

    @classmethod
    def load_or_make(cls, directory: Path, now: Callable[[], float]) -> Authority:
        """
        Use the authority kept in a directory; make it if there is none, or if it expires soon.

        :param directory: ours alone; it is made if need be.
        :param now: gives seconds since the epoch.
        :raises ConfigurationError: its file is damaged, or others may read it.
        :raises UsageError: the directory is a link, or somebody else's.
        """
        kept, public = directory / "authority.pem", directory / "ca.pem"
        private_directory(directory)
        with locked(directory / "authority.lock"):
            signer = _read(kept)
            if signer is None or seconds_left(signer.certificate, now()) < RENEWED_BEFORE:
                signer = new_authority(now())
                write_atomically(kept, _written(signer))
            authority = cls(signer, public, now)
            if not public.is_file() or public.read_bytes() != authority.certificate_pem:
                write_atomically(public, authority.certificate_pem)
        return authority

    def leaf(self, host: str) -> Leaf:
        """
        Ask only for hosts that are allowed: each one's certificate is kept.

        :returns: a certificate for the host, which holds for half of its lifetime at least.
        """
        now = self._now()
        leaf = self._leaves.get(host)
        if leaf is None or seconds_left(leaf.certificate, now) < LEAF_LIFETIME.total_seconds() / 2:
            leaf = self._leaves[host] = new_leaf(self._signer, self._leaf_key, host, now)
        return leaf


def _written(signer: Signer) -> bytes:
    key = signer.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key + signer.certificate.public_bytes(Encoding.PEM)  # in one file, so that they always fit


def _read(path: Path) -> Signer | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ConfigurationError(str(path), f"cannot be read: {e.strerror}") from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise ConfigurationError(
                str(path), f"must be yours alone: if it always was, chmod 600 {path}; else delete it"
            )
        return _parsed(path, file.read(FILE_LIMIT))


def _parsed(path: Path, data: bytes) -> Signer:
    try:
        key, certificate = load_pem_private_key(data, None), x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(str(path), "is damaged: delete it, and a new one is made") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ConfigurationError(str(path), "holds a key and a certificate that do not fit: delete it")
    return Signer(certificate, key)
