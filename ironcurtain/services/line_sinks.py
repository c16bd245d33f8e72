"""Where lines for other programs are written: a file, the journal, syslog, or our own output."""

from __future__ import annotations

import os
import socket
import stat
import syslog
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from ironcurtain.errors import Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked

JOURNAL: Final = "/run/systemd/journal/socket"
"""The journal's own socket (systemd's JOURNAL_NATIVE_PROTOCOL)."""

SYSLOG: Final = "/dev/log"
"""Where syslog(3) writes on Linux and BSD."""

IDENTIFIER: Final = "ironcurtain"
"""Our name in the journal and in syslog."""


class LineSink(Protocol):
    """Takes lines."""

    def write(self, line: bytes) -> None:
        """
        :param line: with its line end.
        :raises Unavailable: it was not written.
        """

    def check(self) -> None:
        """:raises Unavailable: a line could not be written now."""


class FileSink:
    """
    A file of lines, which several processes may write to.

    :param path: the file; it is made for its owner alone, and never a link.
    :param begins: what every line begins with. A file that begins with something else is left alone.
    """

    def __init__(self, path: Path, begins: bytes) -> None:
        self._path, self._begins = path, begins
        self._lock = path.with_name(f"{path.name}.lock")

    def write(self, line: bytes) -> None:
        """See :meth:`LineSink.write`."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._lock):
                fd = self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT)
                try:
                    size = os.fstat(fd).st_size
                    if os.write(fd, line) != len(line):
                        os.ftruncate(fd, size)  # the next line would be one with what was written of this
                        raise Unavailable(f"the disk is full: nothing more is written to {self._path}")
                finally:
                    os.close(fd)
        except OSError as e:
            raise Unavailable(f"{self._path} cannot be written: {e.strerror}") from None

    def check(self) -> None:
        """See :meth:`LineSink.check`."""
        if self._path.exists() or self._path.is_symlink():
            self.keep(lambda lines: lines)
        nearest = next(place for place in self._path.parents if place.exists())
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise Unavailable(f"{self._path} cannot be written: there is no permission for {nearest}")

    def keep(self, chosen: Callable[[bytes], bytes]) -> None:
        """
        Replace the lines by some of them.

        :param chosen: returns those to keep.
        :raises Unavailable: that failed.
        """
        try:
            if not self._path.exists():
                return
            with locked(self._lock):
                fd = self._open(os.O_RDONLY)
                with os.fdopen(fd, "rb") as file:
                    lines = file.read()
                if (kept := chosen(lines)) != lines:
                    write_atomically(self._path, kept)
        except OSError as e:
            raise Unavailable(f"{self._path} cannot be read: {e.strerror}") from None

    def _open(self, flags: int) -> int:
        fd = os.open(self._path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            self._check(fd)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _check(self, fd: int) -> None:
        """:raises Unavailable: it is something else than a file of such lines that is ours alone."""
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise Unavailable(f"{self._path} must be a file of your own, which nobody else may open: chmod 600")
        if status.st_size and os.pread(fd, len(self._begins), 0) != self._begins:
            raise Unavailable(f"{self._path} has something else in it: nothing was written to it")


class JournalSink:
    """
    The journal of systemd.

    :param path: of its socket.
    """

    def __init__(self, path: str = JOURNAL) -> None:
        self._path = path

    def write(self, line: bytes) -> None:
        """See :meth:`LineSink.write`."""
        message = b"MESSAGE=%s\nPRIORITY=6\nSYSLOG_IDENTIFIER=%s\n" % (line.rstrip(b"\n"), IDENTIFIER.encode())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
                journal.setblocking(False)
                journal.connect(self._path)
                journal.send(message)
        except OSError as e:
            raise Unavailable(f"the journal cannot be written: {e.strerror}") from None

    def check(self) -> None:
        """See :meth:`LineSink.check`."""
        if not os.path.exists(self._path):
            raise Unavailable(f"there is no journal at {self._path}")


class SyslogSink:
    """The system's log."""

    def write(self, line: bytes) -> None:
        """See :meth:`LineSink.write`. Whether a daemon keeps the line cannot be known."""
        syslog.openlog(IDENTIFIER, syslog.LOG_PID, syslog.LOG_USER)
        syslog.syslog(syslog.LOG_INFO, line.decode("utf-8", "replace").rstrip("\n"))
        syslog.closelog()

    def check(self) -> None:
        """See :meth:`LineSink.check`."""
        if not os.path.exists(SYSLOG):
            raise Unavailable(f"there is no syslog at {SYSLOG}")


class OutputSink:
    """
    Our standard output, for whoever started us.

    :param output: writes to it.
    """

    def __init__(self, output: Callable[[bytes], None]) -> None:
        self._output = output

    def write(self, line: bytes) -> None:
        """See :meth:`LineSink.write`."""
        self._output(line)

    def check(self) -> None:
        """See :meth:`LineSink.check`."""
