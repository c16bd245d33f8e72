"""
Contents of files, stored by their SHA-256 digest, so that equal ones are stored once.

A content appears completely or not at all. Where the file system can share blocks between files, storing a large one
takes no space. Holes in files stay holes.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Container, Iterator
from pathlib import Path

from ironcurtain.errors import NotFound
from ironcurtain.files import sparse
from ironcurtain.home.layout import private_directory
from ironcurtain.platform.files import share_blocks

BLOCK = 1024 * 1024
"""Number of bytes read at once; smaller files are stored only if their content is new."""

DRAFT = ".draft-"
"""The beginning of the name of a content that is not complete."""

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class ContentStore:
    """:param directory: a private one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def prepare(self) -> None:
        """Create the directory if it is missing."""
        private_directory(self._directory)

    def add(self, source: int) -> str:
        """
        Store the content of a file.

        :param source: descriptor of a regular file, at its beginning.
        :returns: the digest of what is stored.
        :raises OSError: it cannot be read or stored.
        """
        first = _filled(source)
        if len(first) < BLOCK:
            return self.add_bytes(first)
        os.lseek(source, 0, os.SEEK_SET)
        return self._add_large(source)

    def add_bytes(self, data: bytes) -> str:
        """
        :returns: the digest.
        :raises OSError: it cannot be stored.
        """
        digest = hashlib.sha256(data).hexdigest()
        if not os.path.exists(self._path(digest)):
            draft = self._draft()
            with open(os.open(draft, _NEW, 0o600), "wb") as file:
                file.write(data)
            self._publish(draft, digest)
        return digest

    def _add_large(self, source: int) -> str:
        draft, digest = self._draft(), hashlib.sha256()
        with open(os.open(draft, _NEW, 0o600), "r+b", buffering=0) as file:
            if share_blocks(source, file.fileno()):
                sparse.read(file.fileno(), digest.update)
            else:
                sparse.copy(source, file.fileno(), digest.update)
        self._publish(draft, digest.hexdigest())
        return digest.hexdigest()

    def read(self, digest: str, most: int | None = None) -> bytes | None:
        """:returns: a content; ``None`` if it is larger than ``most`` bytes, or missing."""
        try:
            with open(self._path(digest), "rb") as file:
                return file.read() if most is None or os.fstat(file.fileno()).st_size <= most else None
        except FileNotFoundError:
            return None

    def copy(self, digest: str, target: int) -> None:
        """
        Write a content to an empty file.

        :param target: its descriptor, for reading and writing.
        :raises NotFound: the content is missing or damaged; the file may have a part of it.
        :raises OSError: it cannot be written.
        """
        found = hashlib.sha256()
        try:
            with open(self._path(digest), "rb", buffering=0) as file:
                if share_blocks(file.fileno(), target):
                    sparse.read(target, found.update)
                else:
                    sparse.copy(file.fileno(), target, found.update)
        except FileNotFoundError:
            raise NotFound("its content is missing from the snapshot") from None
        if found.hexdigest() != digest:
            raise NotFound("its content in the snapshot is damaged")

    def size(self) -> int:
        """:returns: total size in bytes of all contents."""
        return sum(entry.stat(follow_symlinks=False).st_size for entry in self._stored())

    def sweep(self, needed: Container[str]) -> None:
        """Remove all contents that are not needed, and incomplete ones."""
        for entry in self._stored():
            if entry.name not in needed:
                os.unlink(entry.path)
        for path in self._directory.glob(f"{DRAFT}*"):
            path.unlink()

    def _stored(self) -> Iterator[os.DirEntry[str]]:
        for directory in self._directory.glob("??"):
            with os.scandir(directory) as entries:
                yield from entries

    def _path(self, digest: str) -> str:
        return f"{self._directory}/{digest[:2]}/{digest}"

    def _draft(self) -> str:
        return f"{self._directory}/{DRAFT}{secrets.token_hex(8)}"

    def _publish(self, draft: str, digest: str) -> None:
        try:
            os.rename(draft, self._path(digest))
        except FileNotFoundError:
            os.mkdir(os.path.dirname(self._path(digest)), 0o700)
            os.rename(draft, self._path(digest))


def _filled(source: int) -> bytes:
    """:returns: the first block of a file, less only at its end."""
    data = os.read(source, BLOCK)
    while data and len(data) < BLOCK and (more := os.read(source, BLOCK - len(data))):
        data += more
    return data
