"""Files: descriptors that give no right, permissions, contents."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Callable

if sys.platform == "linux":
    PATH_ONLY = os.O_PATH
    """Flag of ``os.open``: the descriptor names a file and gives no right to it, so that none is needed."""

    LINK_ITSELF = os.O_NOFOLLOW
    """Flag of ``os.open``, with :data:`PATH_ONLY`: a link at the path is opened itself."""

    sync_data: Callable[[int], None] = os.fdatasync
    """Flushes a descriptor's written data to disk."""
else:
    PATH_ONLY = os.O_RDONLY | os.O_NONBLOCK
    LINK_ITSELF = getattr(os, "O_SYMLINK", os.O_NOFOLLOW)
    sync_data = os.fsync

_FICLONE = 0x40049409
"""Make a file share the blocks of another one (Linux, ioctl_ficlonerange(2); ``fcntl.FICLONE`` is of Python 3.12)."""

_ACCESS_LIST = "system.posix_acl_access"
"""The attribute that holds an access control list (Linux, acl(5))."""


def share_blocks(source: int, target: int) -> bool:
    """
    Give a new file the content of another one by sharing its blocks, where the file system can do that; only on Linux.

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


def make_accessible(directory: int, name: str) -> int:
    """
    Give the owner of a directory all permissions on it; links are not followed. On systems other than Linux it must be
    readable.

    :param directory: its parent.
    :returns: a descriptor for reading it.
    :raises OSError: it is not a directory, or belongs to another user.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if sys.platform != "linux":
        opened = os.open(name, flags, dir_fd=directory)
        os.fchmod(opened, 0o700)
        return opened
    found = os.open(name, os.O_PATH | flags, dir_fd=directory)
    try:
        itself = f"/proc/self/fd/{found}"
        os.chmod(itself, 0o700)
        return os.open(itself, flags & ~os.O_NOFOLLOW)
    finally:
        os.close(found)


def change_mode(directory: int, name: str, mode: Callable[[os.stat_result], int]) -> tuple[int, int]:
    """
    Change the permissions of a directory; links are not followed. On systems other than Linux it must be readable.

    :param directory: its parent.
    :param mode: returns the new permissions for its status.
    :returns: the former ones, and the new ones.
    :raises OSError: it is not a directory, or belongs to another user.
    """
    found = os.open(name, PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(found)
        former, new = stat.S_IMODE(status.st_mode), mode(status)
        if new != former and sys.platform == "linux":
            os.chmod(f"/proc/self/fd/{found}", new)
        elif new != former:
            os.fchmod(found, new)
        return former, new
    finally:
        os.close(found)


def has_access_list(path: str | os.PathLike[str]) -> bool:
    """
    :param path: of a file that exists; a link is not followed.
    :returns: whether it can have rights that its mode does not show. On systems other than Linux this is not known, so
        it always can.
    """
    if sys.platform != "linux":
        return True
    return _ACCESS_LIST in os.listxattr(path, follow_symlinks=False)


def nameless_file() -> int:
    """:returns: the descriptor of a new file without a name, for reading and writing; on Linux it is in memory only."""
    if sys.platform == "linux":
        return os.memfd_create("ironcurtain", os.MFD_CLOEXEC)
    import tempfile  # it would slow down the helpers of sandboxes

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
