"""Files of a git repository that others write: each is found in its open directory, and no link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

FILE_LIMIT = 256 * 1024
"""Maximum size in bytes of a file that is read; settings rarely have more than a few KiB."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(directory: str) -> Iterator[int]:
    """
    :param directory: a real path.
    :returns: its descriptor.
    """
    descriptor = os.open(directory, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def kind_at(directory: int, name: str) -> int:
    """:returns: the type of a file as in its mode; 0 if it does not exist."""
    try:
        return stat.S_IFMT(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0


def line_at(directory: int, name: str) -> str:
    """
    :returns: the only line of a file.
    :raises OSError: it cannot be opened, or is a link.
    :raises ValueError: it has no line or several, or is no plain file.
    """
    text = os.fsdecode(content_at(directory, name)).rstrip("\r\n")
    if not text or "\n" in text or "\0" in text:
        raise ValueError(f"{name} is not one line")
    return text


def content_at(directory: int, name: str) -> bytes:
    """
    :raises OSError: it cannot be opened, or is a link.
    :raises ValueError: it is no plain file, or too large.
    """
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    with open(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode) or len(data := stream.read(FILE_LIMIT + 1)) > FILE_LIMIT:
            raise ValueError(f"{name} is not a file of git")
        return data


def make_file(directory: int, name: str, content: bytes = b"") -> None:
    """
    Make a file that all may read, whichever account git runs as.

    :raises FileExistsError: there is something of that name.
    """
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=directory)
    try:
        with open(file, "wb") as made:
            os.fchmod(file, 0o644)
            made.write(content)
        give_to_owner(directory, name)
    except OSError:
        os.unlink(name, dir_fd=directory)
        raise


def give_to_owner(directory: int, name: str) -> None:
    """Let root make a file or directory for the repository's owner."""
    owner = os.fstat(directory)
    if os.geteuid() == 0 and owner.st_uid:
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)
