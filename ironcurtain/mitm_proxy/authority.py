"""
The certificate authority of a home: created once, kept in a file, replaced before it expires.

Only the agents' containers trust it. Its key never leaves this machine.
"""

from __future__ import annotations

import ipaddress
import os
import stat
from collections import OrderedDict
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
"""Lifetime of an authority in seconds (it is renewed automatically)."""

LEAF_LIFETIME: Final = timedelta(days=7)
"""Lifetime of a host's certificate in seconds (creating one takes less than a millisecond)."""

BACKDATED: Final = timedelta(days=1)
"""How many seconds before now certificates begin, for clients whose clocks are slow."""

LEAF_NAME: Final = "IronCurtain MITM proxy"
"""Subject of hosts' certificates. Clients check only the alternative name, which has the host."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A certificate that can sign others, and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


@dataclass(frozen=True, slots=True)
class Leaf:
    """
    A host's certificate and key, as ``use_certificate`` and ``use_privatekey`` of pyOpenSSL take them.

    The chain to send does not include the authority: clients that trust it have it.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)


def new_key() -> ec.EllipticCurvePrivateKey:
    """:returns: a P-256 key. Signing with it is ten times as fast as with RSA, and all clients support it."""
    return ec.generate_private_key(ec.SECP256R1())


def new_authority(now: float) -> Signer:
    """:param now: seconds since the epoch."""
    key = new_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Each authority needs its own name, since clients find the issuer by name.
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
    :param key: the host's key; several hosts may share one.
    :param host: its name, ASCII, or its address.
    :param now: seconds since the epoch.
    :returns: a certificate that expires no later than the authority's.
    """
    builder = (
        _builder(_name(LEAF_NAME), signer.certificate.subject, key, now, _left(signer, now))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_others=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False)
    )
    return Leaf(builder.sign(signer.key, hashes.SHA256()), key)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def seconds_left(certificate: x509.Certificate, now: float) -> float:
    """:returns: the remaining lifetime in seconds; zero if the certificate is not valid yet."""
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
"""Seconds before its expiry at which an authority is replaced for new sessions; running ones keep theirs."""

VISITED_LIMIT: Final = 256
"""Maximum number of certificates that are kept for hosts that agents chose; the one unused for longest goes first."""

FILE_LIMIT: Final = 64 * 1024
"""Maximum number of bytes read of the authority's file."""

__all__ = ["Authority", "Leaf"]


class Authority:
    """
    :param signer: the authority's certificate and key.
    :param certificate_path: a file with the certificate alone.
    :param now: returns seconds since the epoch.
    """

    def __init__(self, signer: Signer, certificate_path: Path, now: Callable[[], float]) -> None:
        self._signer, self._now = signer, now
        self.certificate_path = certificate_path
        """Path of the certificate. Another process can replace the file, so give sessions the bytes instead."""
        self.certificate_pem = signer.certificate.public_bytes(Encoding.PEM)
        """The certificate that containers have to trust."""
        self._leaf_key = new_key()
        self._leaves: dict[str, Leaf] = {}
        self._visited: OrderedDict[str, Leaf] = OrderedDict()

    @classmethod
    def load_or_make(cls, directory: Path, now: Callable[[], float]) -> Authority:
        """
        Load the authority from a directory, or create it if it is missing or expires soon.

        :param directory: a private directory, created if missing.
        :param now: returns seconds since the epoch.
        :raises ConfigurationError: its file is damaged, or others can read it.
        :raises UsageError: the directory is a link, or belongs to somebody else.
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
        Call this only for hosts of the settings, since each certificate is kept.

        :returns: a certificate for the host, valid for at least half of its lifetime.
        """
        leaf = self._leaves[host] = self._fresh(self._leaves.get(host), host)
        return leaf

    def visited_leaf(self, host: str) -> Leaf:
        """:returns: a certificate for any host, likewise; at most :data:`VISITED_LIMIT` of these are kept."""
        leaf = self._visited[host] = self._fresh(self._visited.pop(host, None), host)
        while len(self._visited) > VISITED_LIMIT:
            self._visited.popitem(last=False)
        return leaf

    def _fresh(self, leaf: Leaf | None, host: str) -> Leaf:
        now = self._now()
        if leaf is not None and seconds_left(leaf.certificate, now) >= LEAF_LIFETIME.total_seconds() / 2:
            return leaf
        return new_leaf(self._signer, self._leaf_key, host, now)


def _written(signer: Signer) -> bytes:
    key = signer.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key + signer.certificate.public_bytes(Encoding.PEM)  # in one file, so that they always match


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
                str(path), f"must be readable by you only: chmod 600 {path} if it always was, else delete it"
            )
        return _parsed(path, file.read(FILE_LIMIT))


def _parsed(path: Path, data: bytes) -> Signer:
    try:
        key, certificate = load_pem_private_key(data, None), x509.load_pem_x509_certificate(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(str(path), "is damaged: delete it, and a new one is created") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ConfigurationError(str(path), "contains a key and a certificate that do not match: delete it")
    return Signer(certificate, key)
