"""
The certificate authority of a home: made once, kept in a file, made anew before it expires.

Agents' containers trust it, and nobody else does. Its key never leaves this machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.home.layout import private_directory
from ironcurtain.mitm_proxy.certificates import (
    LEAF_LIFETIME,
    Leaf,
    Signer,
    new_authority,
    new_key,
    new_leaf,
    seconds_left,
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
