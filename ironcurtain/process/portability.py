"""Functions that differ between Linux and other systems."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable

sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
"""Flushes a descriptor's written data to disk."""

_LINUX_PEER = struct.Struct("3i")
"""pid, uid and gid of a UNIX socket's peer (Linux, socket(7), SO_PEERCRED)."""

_BSD_PEER = struct.Struct("2Ih16I")
"""Version, uid, number of groups and groups (``struct xucred`` of the BSDs and macOS, unix(4), LOCAL_PEERCRED)."""

_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1

_FICLONE = 0x40049409
"""Make a file share the blocks of another one (Linux, ioctl_ficlonerange(2); ``fcntl.FICLONE`` is of Python 3.12)."""


def share_blocks(source: int, target: int) -> bool:
    """
    Give a new file the content of another one by sharing its blocks, where the file system can do that.

    :param source: descriptor of a regular file, for reading; ``target``: of an empty one, for writing.
    :returns: whether it has the content now; if not, it is empty.
    """
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def peer_uid(connection: socket.socket) -> int:
    """:returns: the uid of the peer of a UNIX socket when it connected."""
    if (option := getattr(socket, "SO_PEERCRED", None)) is not None:
        return int(_LINUX_PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _LINUX_PEER.size))[1])
    return int(_BSD_PEER.unpack(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _BSD_PEER.size))[1])


def make_accessible(directory: int, name: str) -> int:
    """
    Give the owner of a directory all permissions on it; links are not followed. On systems other than Linux it must be
    readable.

    :param directory: its parent.
    :returns: a descriptor for reading it.
    :raises OSError: it is not a directory, or belongs to another user.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if (path_only := getattr(os, "O_PATH", None)) is None:
        opened = os.open(name, flags, dir_fd=directory)
        os.fchmod(opened, 0o700)
        return opened
    found = os.open(name, path_only | flags, dir_fd=directory)
    try:
        itself = f"/proc/self/fd/{found}"
        os.chmod(itself, 0o700)
        return os.open(itself, flags & ~os.O_NOFOLLOW)
    finally:
        os.close(found)
