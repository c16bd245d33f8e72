"""
The key of a home that signs heads of audit logs.

A signed head states that the log of a session had, at a time, a record with this number and digest. Since each record
contains the digest of the one before it, the head stands for all records up to it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import publish_once
from ironcurtain.files.private import read_private
from ironcurtain.home.layout import private_directory

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateBuilder

FILE_LIMIT = 64 * 1024
"""Maximum size in bytes of a file with a key (one has about 120)."""

STATEMENT = "ironcurtain-audit-head-1"
"""The first line of what is signed. It keeps a signature from being valid for anything else."""

KEY_ID_DIGITS = 32
"""Length of a key's id in hexadecimal digits: 128 bits of the SHA-256 digest of the public key."""


class SignedHead(msgspec.Struct, frozen=True):
    """
    The head of a log, signed.

    :param sequence: number of the last record that it stands for.
    :param head: digest of that record's line.
    :param time: when it was signed, as records have it.
    :param key: id of the key.
    :param signature: in base64.
    """

    session: str
    sequence: int
    head: str
    time: str
    key: str
    signature: str = ""

    @property
    def statement(self) -> bytes:
        """What is signed."""
        parts = (STATEMENT, self.session, str(self.sequence), self.head, self.time, self.key)
        return "".join(f"{part}\n" for part in parts).encode("utf-8", "backslashreplace")

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> SignedHead | None:
        """:returns: the head in a JSON object; ``None`` if it is not one."""
        texts = [members.get(name) for name in ("session", "head", "time", "key", "signature")]
        sequence = members.get("sequence")
        if not isinstance(sequence, int) or not all(isinstance(text, str) for text in texts):
            return None
        session, head, time, key, signature = map(str, texts)
        return cls(session, sequence, head, time, key, signature)


class VerifyingKey:
    """The public half of a home's key."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key
        raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.raw = raw
        """The key itself, 32 bytes (RFC 8032)."""
        self.id = hashlib.sha256(raw).hexdigest()[:KEY_ID_DIGITS]
        """Names the key in records."""

    @classmethod
    def load(cls, path: Path) -> VerifyingKey:
        """
        :param path: a file with a public key, as ``ironcurtain audit key`` prints it.
        :raises ConfigurationError: it is none.
        """
        try:
            with path.open("rb") as file:
                key = load_pem_public_key(file.read(FILE_LIMIT))
        except OSError as e:
            raise ConfigurationError(str(path), f"cannot be read: {e.strerror}") from None
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigurationError(str(path), "has no Ed25519 public key, as 'ironcurtain audit key' prints it")
        return cls(key)

    @property
    def pem(self) -> str:
        """The key for other programs, such as openssl."""
        return self._key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def verifies(self, head: SignedHead) -> bool:
        """:returns: whether this key signed a head."""
        if head.key != self.id:
            return False
        try:
            self._key.verify(base64.b64decode(head.signature, validate=True), head.statement)
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key of a home, with its private half."""

    _private: Ed25519PrivateKey = field(repr=False)
    public: VerifyingKey

    @classmethod
    def load_or_make(cls, directory: Path) -> SigningKey:
        """
        Load the key from a directory, or create it. It is never replaced, since it is needed to verify older logs.

        :param directory: a private directory, created if missing.
        :raises ConfigurationError: its file is damaged, or others can read it.
        :raises UsageError: the directory is a link, or belongs to somebody else.
        """
        path = private_directory(directory) / KEY_FILE
        if not path.exists():
            made = Ed25519PrivateKey.generate()
            publish_once(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return cls._read(path)

    @classmethod
    def load(cls, directory: Path) -> SigningKey | None:
        """
        :returns: the key in a directory; ``None`` if there is none yet.
        :raises ConfigurationError: as :meth:`load_or_make`.
        """
        path = directory / KEY_FILE
        return cls._read(path) if path.exists() else None

    @classmethod
    def _read(cls, path: Path) -> SigningKey:
        try:
            key = load_pem_private_key(read_private(path, FILE_LIMIT), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ConfigurationError(str(path), "is damaged: restore it from a backup, or move it away") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationError(str(path), "must be an Ed25519 key: move it away, and a new one is created")
        return cls(key, VerifyingKey(key.public_key()))

    def sign(self, session: str, sequence: int, head: str, time: str) -> SignedHead:
        """:returns: the signed head of a log; see :class:`SignedHead` for the parameters."""
        unsigned = SignedHead(session, sequence, head, time, self.public.id)
        signature = base64.b64encode(self._private.sign(unsigned.statement)).decode()
        return SignedHead(session, sequence, head, time, self.public.id, signature)

    def certify(self, builder: CertificateBuilder) -> Certificate:
        """:returns: a certificate of this key, signed with it."""
        return builder.public_key(self._private.public_key()).sign(self._private, None)

    def for_tls(self) -> Ed25519PrivateKey:
        """:returns: the private half. What TLS 1.3 signs begins with words of its own (RFC 8446, section 4.4.3)."""
        return self._private


KEY_FILE = "signing.pem"
"""Name of the file with the private key."""
