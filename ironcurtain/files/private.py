"""Read files that nobody but their owner may read or write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ironcurtain.errors import ConfigurationError


def read_private(path: Path, limit: int) -> bytes:
    """
    :param limit: maximum size in bytes.
    :returns: the content of a regular file of this account, closed to others.
    :raises ConfigurationError: it is something else, is too large, or cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise ConfigurationError(str(path), "must be a regular file of your own")
            if found.st_mode & 0o077:
                raise ConfigurationError(str(path), "is open to others: chmod 600 it")
            data = file.read(limit + 1)
    except OSError as e:
        raise ConfigurationError(str(path), f"cannot be read: {e.strerror}") from None
    if len(data) > limit:
        raise ConfigurationError(str(path), f"has more than {limit} bytes")
    return data


def file_stamp(path: Path) -> tuple[int, ...]:
    """:returns: what changes when a file is replaced or written; nothing if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
