"""Read and replace the contents of regular files through descriptors."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ironcurtain.servers.files.failures import FileError, explain, shown
from ironcurtain.servers.files.walk import SAFE, Place, open_regular, parent, require_regular, status

READ_LIMIT = 16 * 1024 * 1024
"""Maximum number of bytes read for one answer: 16 MiB (larger answers are useless to a model)."""

BLOCK = 256 * 1024

Version = tuple[int, int, int]
"""Identifies a version of a file: inode, size in bytes, time of change in nanoseconds."""


def _version(found: os.stat_result) -> Version:
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _opened(place: Place) -> Iterator[int]:
    with parent(place) as (directory, _):
        descriptor = open_regular(directory, place, os.O_RDONLY)
    try:
        yield descriptor
    except OSError as e:
        raise explain(e, place.path) from e
    finally:
        os.close(descriptor)


def read_all(place: Place, limit: int = READ_LIMIT) -> tuple[bytes, Version]:
    """
    Read a complete file.

    :returns: its bytes, and its version for :func:`replace`.
    :raises FileError: it is longer than ``limit`` bytes, or cannot be read.
    """
    with _opened(place) as descriptor:
        found = os.fstat(descriptor)
        data = bytearray()
        while len(data) <= limit and (block := os.read(descriptor, BLOCK)):
            data += block
        if len(data) > limit:
            raise FileError(
                f"{shown(place.path)} has {max(found.st_size, len(data))} bytes, over the limit of {limit};"
                " read a part of it with read_text_file and head or tail"
            )
        return bytes(data), _version(found)


def read_head(place: Place, lines: int) -> bytes:
    """
    Read the first lines of a file, with their ends.

    :raises FileError: they are longer than :data:`READ_LIMIT`, or the file cannot be read.
    """
    data, found = bytearray(), 0
    with _opened(place) as descriptor:
        while found < lines and len(data) <= READ_LIMIT and (block := os.read(descriptor, BLOCK)):
            found += block.count(b"\n")
            data += block
    pieces = bytes(data).split(b"\n", lines)
    return _within_limit(b"\n".join(pieces[:lines]) + (b"\n" if len(pieces) > lines else b""), place)


def read_tail(place: Place, lines: int) -> bytes:
    """
    Read the last lines of a file, with their ends, reading backwards.

    :raises FileError: as :func:`read_head`.
    """
    blocks: list[bytes] = []
    found = size = 0
    with _opened(place) as descriptor:
        position = os.fstat(descriptor).st_size
        while position > 0 and found <= lines and size <= READ_LIMIT:
            length = min(BLOCK, position)
            position -= length
            blocks.append(os.pread(descriptor, length, position))
            found, size = found + blocks[-1].count(b"\n"), size + length
    data = b"".join(reversed(blocks))
    end = b"\n" if data.endswith(b"\n") else b""
    return _within_limit(b"\n".join(data.removesuffix(b"\n").rsplit(b"\n", lines)[-lines:]) + end, place)


def _within_limit(data: bytes, place: Place) -> bytes:
    if len(data) > READ_LIMIT:
        raise FileError(f"these lines of {shown(place.path)} have over {READ_LIMIT} bytes; ask for fewer")
    return data


def text(data: bytes, place: Place) -> str:
    """
    Decode a file's bytes.

    :raises FileError: they are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        where = f"byte 0x{data[e.start]:02x} at offset {e.start}"
        raise FileError(f"{shown(place.path)} is not UTF-8 text ({where}); read_media_file gives its bytes") from None


def replace(place: Place, data: bytes, expected: Version | None = None) -> bool:
    """
    Create a file, or replace the contents of an existing one atomically, keeping its mode.

    An existing file is replaced by a new one, so other hard links keep the old contents.

    :param expected: fail unless the file still has this version.
    :returns: whether the file is new.
    :raises FileError: it is not a regular file that may be written, or has changed.
    """
    with parent(place) as (directory, name):
        try:
            found = status(directory, place)
            if found is None and expected is None:
                _write_new(directory, name, data, 0o666)
                return True
            _require_writable(directory, place, expected)
            _write_over(directory, name, data, stat.S_IMODE(found.st_mode) & 0o777 if found else 0o666)
            return False
        except OSError as e:
            raise explain(e, place.path) from e


def _require_writable(directory: int, place: Place, expected: Version | None) -> None:
    descriptor = open_regular(directory, place, os.O_WRONLY)
    try:
        if expected not in (None, _version(os.fstat(descriptor))):
            raise FileError(f"{shown(place.path)} has changed since it was read; read it again")
    finally:
        os.close(descriptor)


def _write_over(directory: int, name: str, data: bytes, mode: int) -> None:
    temporary = f".ironcurtain-{os.urandom(8).hex()}.tmp"
    _write_new(directory, temporary, data, 0o600, mode)
    try:
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(temporary, dir_fd=directory)
        raise


def _write_new(directory: int, name: str, data: bytes, mode: int, final: int | None = None) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, mode, dir_fd=directory)
    try:
        require_regular(os.fstat(descriptor), name)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if final is not None:
            os.fchmod(descriptor, final)
    except OSError:
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)
