"""Locks between processes that the kernel frees when their holder dies (flock(2))."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironcurtain.errors import Unavailable


class Held(Unavailable):
    """
    Another process holds the lock.

    :param holder: the content of the lock file, usually its pid; may be empty.
    """

    code = "LOCKED"

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is held by {f'process {holder}' if holder else 'another process'}")
        self.path, self.holder = path, holder


class FileLock:
    """
    An exclusive lock on a file. The file remains when the lock is released.

    Take it after the last fork: a forked child shares it. It is close-on-exec, so executed children do not.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def acquire(self) -> None:
        """
        Take the lock without waiting, and write this process's pid to the file.

        :raises Held: another process has it.
        """
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
            os.close(fd)
            raise Held(self.path, holder if holder.isdigit() else "") from None
        self._keep(fd)

    def wait(self) -> None:
        """Take the lock, blocking until it is free: only for sections of a few file operations."""
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except BaseException:
            os.close(fd)
            raise
        self._keep(fd)

    def release(self) -> None:
        """Release the lock; no effect if it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def held(self) -> bool:
        """Whether this object has the lock."""
        return self._fd is not None

    def _open(self) -> int:
        if self._fd is not None:
            raise RuntimeError(f"{self.path} is locked already")
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def _keep(self, fd: int) -> None:
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        except OSError:
            os.close(fd)  # otherwise nobody could take the lock while this process lives
            raise
        self._fd = fd


def is_held(path: Path) -> bool:
    """:returns: whether some process holds the lock on a file now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file for a short section, waiting for it if necessary."""
    lock = FileLock(path)
    lock.wait()
    try:
        yield
    finally:
        lock.release()
