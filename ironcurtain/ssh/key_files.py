"""The two files of the SSH service in the home: the permitted keys, and the host key."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from ironcurtain.errors import ConfigurationError, NotFound, UsageError
from ironcurtain.files.atomic import publish_once, write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.files.private import read_private
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.ssh.authorized_keys import AuthorizedKey, KeyList, fingerprint, parse
from ironcurtain.text.decoding import decode_text

SIZE_LIMIT = 1024 * 1024
"""Maximum size in bytes of either file (thousands of keys)."""

HEADING = (
    "# Keys that may log in over SSH, one per line:\n"
    '# roles="view,approve,attach,admin" TYPE KEY NAME; see: ironcurtain ssh --help\n'
)

Mark = tuple[int, ...]
"""Identifies a version of a file."""


class KeyFile:
    """
    The permitted keys.

    :param directory: private; created if missing.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "authorized_keys"
        self._mark: Mark | None = None
        self._list = KeyList()

    @classmethod
    def of(cls, home: Home) -> KeyFile:
        """:returns: the file of a home."""
        return cls(directory(home))

    def read(self) -> KeyList:
        """
        The current keys; the file is read again if it may have changed.

        :returns: an empty list if there is no file.
        :raises ConfigurationError: others could have written the file, or it cannot be read. Then nobody may log in.
        """
        _check_directory(self.path.parent)
        mark = _mark(self.path)
        if mark is None or mark != self._mark:
            text = _private_text(self.path) if mark is not None else ""
            self._list, self._mark = parse(text), mark
        return self._list

    def add(self, key: AuthorizedKey) -> None:
        """
        Add a key; a key that is listed under this name gets the given roles.

        :raises UsageError: the key is listed with another name, or another key has this name.
        :raises ConfigurationError: as :meth:`read`.
        """

        def with_it(text: str, listed: KeyList) -> str:
            for other in listed.keys:
                if (key.blob == other.blob) != (key.name == other.name):
                    raise UsageError(f"{other.name} is listed already: remove it first (ironcurtain ssh remove-key)")
            lines = (text or HEADING).splitlines()
            if listed.find(key.blob) is not None:
                lines = [key.line if _is_of(line, key.name) else line for line in lines]
            else:
                lines.append(key.line)
            changed = "".join(f"{line}\n" for line in lines)
            if parse(changed).find(key.blob) != key:
                raise UsageError(f"{self.path} has a wrong line with the same key or name: correct it first")
            return changed

        self._change(with_it)

    def remove(self, name: str) -> None:
        """
        Remove a key, and close its connections.

        :raises NotFound: no key has this name.
        :raises ConfigurationError: as :meth:`read`.
        """

        def without_it(text: str, _: KeyList) -> str:
            lines = text.splitlines(keepends=True)
            kept = [line for line in lines if not _is_of(line, name)]
            if len(kept) == len(lines):
                raise NotFound(f"no key is called {name}: see 'ironcurtain ssh keys'")
            return "".join(kept)

        self._change(without_it)

    def _change(self, change: Callable[[str, KeyList], str]) -> None:
        private_directory(self.path.parent)
        with locked(self.path.parent / "authorized_keys.lock"):
            text = _private_text(self.path) if _mark(self.path) is not None else ""
            write_atomically(self.path, change(text, parse(text)).encode())


def _is_of(line: str, name: str) -> bool:
    return not line.lstrip().startswith("#") and line.split()[-1:] == [name]


class HostKey(msgspec.Struct, frozen=True):
    """
    The host key.

    :param pem: the private key in OpenSSH's format.
    :param blob: the public key as it is sent.
    """

    pem: bytes
    blob: bytes
    public: str

    @property
    def fingerprint(self) -> str:
        """The fingerprint, as ``ssh`` shows it at the first connection."""
        return fingerprint(self.blob)

    def __repr__(self) -> str:
        return f"HostKey({self.fingerprint})"


def directory(home: Home) -> Path:
    """:returns: the directory of the SSH service's files."""
    return home.path / "ssh"


def host_key(home: Home) -> HostKey:
    """
    The host key, created if missing. It is never replaced, since clients would refuse another key.

    :raises ConfigurationError: it is damaged, or others can read it.
    """
    path = private_directory(directory(home)) / "host_key"
    if _mark(path) is None:
        made = Ed25519PrivateKey.generate()
        publish_once(path, made.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    pem = _private_text(path).encode()
    try:
        key = load_ssh_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigurationError(str(path), "is not a private key without a passphrase") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(str(path), "must be an ed25519 key: move it away, and a new one is created")
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return HostKey(pem, base64.b64decode(public.split()[1]), public)


def _mark(path: Path) -> Mark | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ConfigurationError(str(path), f"cannot be read: {e.strerror}") from None
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_uid,
        found.st_mode,
    )


def _check_directory(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigurationError(str(path), "must be your own directory, and closed to others: chmod 700 it")


def _private_text(path: Path) -> str:
    return decode_text(str(path), read_private(path, SIZE_LIMIT))
