"""Copy files so that their holes stay holes: an agent can make one of any size without using space."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from itertools import chain

BLOCK = 1024 * 1024
"""Number of bytes read at once."""

_ZEROS = memoryview(bytes(BLOCK))

_UNKNOWN = frozenset((errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS))
"""Errors of file systems that do not tell where holes are."""


def copy(source: int, target: int, update: Callable[[memoryview], object] | None = None) -> int:
    """
    Copy a file as long as it was at the beginning.

    :param source: descriptor of a regular file, for reading.
    :param target: descriptor of an empty file, for writing.
    :param update: called with the content piece by piece, that of holes included. Without it, holes take no time.
    :returns: number of bytes, holes included.
    :raises OSError: it cannot be read or written.
    """
    size = 0
    for position, data, hole in _pieces(source, holes=update is not None):
        if update is not None:
            update(data)
        size = position + len(data)
        if not hole:
            _write(target, data, position)
    os.ftruncate(target, size)
    return size


def read(source: int, update: Callable[[memoryview], object]) -> None:
    """
    Read a file without reading its holes.

    :param source: descriptor of a regular file, for reading.
    :param update: called with the content piece by piece, that of holes included.
    :raises OSError: it cannot be read.
    """
    for _, data, _ in _pieces(source, holes=True):
        update(data)


def _pieces(source: int, *, holes: bool) -> Iterator[tuple[int, memoryview, bool]]:
    """
    :param holes: whether to return zeros for holes.
    :returns: position and content of each piece of a file, and whether it is one of a hole; at last an empty one.
    """
    done, size = 0, os.fstat(source).st_size
    for start, end in chain(_data_ranges(source, size), ((size, size),)):
        while holes and done < start:
            piece = _ZEROS[: start - done]
            yield done, piece, True
            done += len(piece)
        done = start
        while done < end:
            piece = memoryview(os.pread(source, min(BLOCK, end - done), done))
            if not piece:  # the file was cut off meanwhile
                yield done, _ZEROS[:0], True
                return
            yield done, piece, False
            done += len(piece)
    yield done, _ZEROS[:0], True


def _data_ranges(source: int, size: int) -> Iterator[tuple[int, int]]:
    """:returns: beginning and end of each part of a file that is no hole; one for the whole file if that is unknown."""
    position = 0
    while position < size:
        try:
            start = os.lseek(source, position, os.SEEK_DATA)
            end = min(os.lseek(source, start, os.SEEK_HOLE), size)
        except OSError as e:
            if e.errno in _UNKNOWN:
                yield position, size
            elif e.errno != errno.ENXIO:  # that one says that nothing but a hole follows
                raise
            return
        if start < size:
            yield start, end
        position = end


def _write(target: int, data: memoryview, position: int) -> None:
    while data:
        written = os.pwrite(target, data, position)
        data, position = data[written:], position + written
