"""Write files so that they appear completely or not at all, readable by their owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """
    Write a file, replacing an older one: readers see either the old or the complete new one.

    :param durable: as for :func:`publish_once`.
    """
    temporary = _temporary(path, data, durable=durable)
    try:
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def publish_once(path: Path, data: bytes, *, durable: bool = True) -> bool:
    """
    Write a file unless it exists.

    :param durable: whether it is on disk when this returns. If not, other processes see it completely, but it can be
        lost, or empty, after a crash of the machine.
    :returns: whether it was written; ``False`` if a file of this name exists, which is kept.
    """
    temporary = _temporary(path, data, durable=durable)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def _temporary(path: Path, data: bytes, *, durable: bool) -> str:
    name = str(path.parent / f".{path.name}.{secrets.token_hex(6)}")
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except OSError:
        os.unlink(name)
        raise
    return name
