"""A file that grows by whole lines, and which nobody else changes meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from ironcurtain.errors import AuditUnavailable


class LogChanged(AuditUnavailable):
    """Another program removed, replaced or changed the log. The message says which."""


class LogFile:
    """
    :param path: created for its owner alone, or continued.
    :raises AuditUnavailable: it is something else than a regular file.
    :raises OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._name = path, os.fspath(path)
        self.fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        """For syncing; -1 when closed."""
        found = os.fstat(self.fd)
        self._identity, self._size = (found.st_dev, found.st_ino), found.st_size
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise AuditUnavailable(f"{path} is not a regular file: move it away")

    def reader(self) -> BinaryIO:
        """
        :returns: the file, open for reading from its start. One reader at a time: they share their position.
        :raises OSError: there are too many open files.
        """
        file = os.fdopen(os.dup(self.fd), "rb")
        file.seek(0)
        return file

    def write(self, data: bytes) -> None:
        """
        Append. Call :meth:`check` before anything rests on it.

        :raises OSError: the data was not written completely.
        """
        written = os.write(self.fd, data)
        if written < len(data):
            raise OSError(errno.ENOSPC, "the disk is full")
        self._size += written

    def check(self) -> None:
        """:raises LogChanged: the path names another file now or none, or the size is not what was written."""
        try:
            named = os.lstat(self._name)
        except OSError:
            raise LogChanged("it was removed or moved away while the session ran") from None
        if (named.st_dev, named.st_ino) != self._identity:
            raise LogChanged("it was replaced by another file while the session ran")
        if named.st_size != self._size:
            how = "cut" if named.st_size < self._size else "written to"
            raise LogChanged(
                f"another program has {how} it while the session ran: it has {named.st_size} bytes, not {self._size}"
            )

    def close(self) -> None:
        """Close the file. Can be called twice."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
