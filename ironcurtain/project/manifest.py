"""
The manifest of a workspace when its session first started: a list of all files, and copies of small ones.

Both are in the session's directory, which the agent cannot access. The list is JSON, with one entry per line after a
head; the copies are concatenated in a second file. Copies and digests are limited in size, so that a large workspace
delays the start by seconds at most. Files without a copy are compared by digest, or by size and time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote_to_bytes

import msgspec

from ironcurtain.errors import ConfigurationError, NotFound
from ironcurtain.project.tree import Tree, TreeEntry, above, look
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Place, open_regular, parent

FORMAT_VERSION = 1
"""Format version of the list; newer ones are refused."""

KEPT_FILE = 1024 * 1024
"""Maximum size in bytes of a file that is copied; larger ones are rarely text that people compare."""

KEPT_TOTAL = 256 * 1024 * 1024
"""Maximum total size in bytes of the copies of one session."""

READ_FILE = 64 * 1024 * 1024
"""Maximum size in bytes of a file whose digest is computed."""

READ_TOTAL = 1024 * 1024 * 1024
"""Maximum number of bytes read for one manifest (a few seconds)."""

_BLOCK = 1024 * 1024


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """
    The first line of the list.

    :param workspace: real path of the directory.
    """

    version: int = FORMAT_VERSION
    workspace: str


class _Line(msgspec.Struct, frozen=True):
    path: str
    entry: TreeEntry


class Manifest(msgspec.Struct, frozen=True):
    """
    :param entries: by path within the workspace.
    :param originals: the file with the copies.
    """

    workspace: str
    entries: Mapping[str, TreeEntry]
    originals: Path

    def original(self, path: str) -> bytes | None:
        """:returns: a file's original content; ``None`` if it was not kept."""
        entry = self.entries.get(path)
        if entry is None or entry.at < 0:
            return None
        with self.originals.open("rb") as file:
            file.seek(entry.at)
            return file.read(entry.size)

    def covers(self, path: str) -> bool:
        """:returns: whether a path's directory was listed, so that an unlisted path did not exist."""
        return covers(self.entries, path)


def covers(entries: Mapping[str, TreeEntry], path: str) -> bool:
    """:returns: whether a path's directory is listed in these entries, so that a path they lack did not exist."""
    return all((entry := entries.get(name)) is None or entry.listed for name in above(path))


def read_manifest(path: Path, originals: Path) -> Manifest:
    """
    :raises NotFound: there is none.
    :raises ConfigurationError: it is damaged, or has a newer version.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        raise NotFound(
            "there is nothing to compare with: the session did not start, or it is one of 'ironcurtain mcp-proxy', in "
            "whose workspace others work, too"
        ) from None
    try:
        head = msgspec.json.decode(lines[0], type=Head)
        if head.version != FORMAT_VERSION:
            raise ConfigurationError(str(path), f"has format version {head.version}: use a newer ironcurtain")
        entries = dict(map(decode_line, lines[1:]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError) as e:
        raise ConfigurationError(str(path), f"is damaged: {e}") from None
    return Manifest(head.workspace, entries, originals)


def take(tree: Tree, path: Path, originals: Path) -> None:
    """
    Write the manifest of a tree. It appears once it is complete, and not at all if the walk was stopped.

    :param path: path of the new list.
    :param originals: path of the new file of copies.
    :raises OSError: they cannot be written.
    """
    draft = path.with_suffix(".draft")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(draft, flags, 0o600), "wb") as lines, open(os.open(originals, flags, 0o600), "wb") as copies:
        lines.write(msgspec.json.encode(Head(workspace=tree.root.path)) + b"\n")
        keeper = _Keeper(copies)
        for place, entry in tree.entries():
            kept = keeper.keep(place, entry) if entry.kind == "file" else entry
            lines.write(encode_line("/".join(place.parts), kept))
    if tree.stopped():
        draft.unlink()
    else:
        draft.rename(path)


class _Keeper:
    """Reads files within the limits, and stores copies of small ones, each content once."""

    def __init__(self, copies: BinaryIO) -> None:
        self._copies = copies
        self._kept = self._read = 0
        self._at: dict[str, int] = {}

    def keep(self, place: Place, entry: TreeEntry) -> TreeEntry:
        """:returns: the entry with its digest, and with the position of its copy if there is one."""
        if entry.size > READ_FILE or self._read + entry.size > READ_TOTAL:
            return entry
        self._read += entry.size
        small = entry.size <= KEPT_FILE and self._kept + entry.size <= KEPT_TOTAL
        with suppress(FileError, OSError):
            seen, digest, data = read(place, KEPT_FILE if small else 0)
            at = self._add(digest, data) if small and len(data) == seen.size else -1
            return msgspec.structs.replace(seen, digest=digest, at=at)
        return entry

    def _add(self, digest: str, data: bytes) -> int:
        if digest not in self._at:
            self._at[digest] = self._kept
            self._kept += self._copies.write(data)
        return self._at[digest]


def read(place: Place, most: int) -> tuple[TreeEntry, str, bytes]:
    """
    Read a regular file.

    :param most: number of bytes to return.
    :returns: its entry, the digest of its contents, and at most ``most`` of its bytes.
    :raises FileError: it is not a regular file.
    """
    with parent(place) as (descriptor, name):
        entry = look(descriptor, name)
        with open(open_regular(descriptor, place, os.O_RDONLY), "rb", buffering=0) as file:
            size, digest, data = 0, hashlib.sha256(), b""
            while size <= READ_FILE and (block := file.read(_BLOCK)):
                size += len(block)
                digest.update(block)
                data += block[: most - len(data)]
    return entry, digest.hexdigest(), data


def read_digest(place: Place) -> str:
    """
    :returns: the digest of a regular file's whole content.
    :raises FileError: it is not a regular file.
    """
    with (
        parent(place) as (descriptor, _name),
        open(open_regular(descriptor, place, os.O_RDONLY), "rb", buffering=0) as file,
    ):
        return hashlib.file_digest(file, "sha256").hexdigest()


_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(_Line)


def encode_line(path: str, entry: TreeEntry) -> bytes:
    """:returns: an entry as one line, whatever bytes its names contain."""
    quoted = _with_target(entry, _quoted(entry.target)) if entry.target else entry
    return _encoder.encode(_Line(_quoted(path), quoted)) + b"\n"


def decode_line(line: bytes) -> tuple[str, TreeEntry]:
    """
    :returns: the path and the entry of a line.
    :raises msgspec.DecodeError: it is damaged.
    """
    read = _decoder.decode(line)
    return _unquoted(read.path), _with_target(read.entry, _unquoted(read.entry.target))


def _with_target(entry: TreeEntry, target: str) -> TreeEntry:
    return msgspec.structs.replace(entry, target=target) if entry.target else entry


def _quoted(path: str) -> str:
    return quote(os.fsencode(path), safe="/ ")  # names may not be UTF-8


def _unquoted(text: str) -> str:
    return os.fsdecode(unquote_to_bytes(text))
