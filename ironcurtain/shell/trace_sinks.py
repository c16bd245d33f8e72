"""Where spans are written: a file, the journal, syslog, or our own output."""

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
from ironcurtain.shell.trace import SPAN_BEGINS, SinkChoice, recent

JOURNAL: Final = "/run/systemd/journal/socket"
"""The journal's own socket (systemd's JOURNAL_NATIVE_PROTOCOL)."""

IDENTIFIER: Final = "ironcurtain"
"""Our name in the journal and in syslog."""


class TraceSink(Protocol):
    """Takes spans."""

    def write(self, line: bytes) -> None:
        """
        :param line: one span, with its line end.
        :raises Unavailable: it was not written.
        """


class FileSink:
    """
    A file of spans, one a line, which several agents may write to.

    :param path: the file; it is made for its owner alone, and never a link.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(f"{path.name}.lock")

    def write(self, line: bytes) -> None:
        """See :meth:`TraceSink.write`."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(self._lock):
                fd = self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT)
                try:
                    if os.write(fd, line) != len(line):
                        raise Unavailable(f"the disk is full: no trace in {self._path}")
                finally:
                    os.close(fd)
        except OSError as e:
            raise Unavailable(f"no trace can be written to {self._path}: {e.strerror}") from None

    def prune(self, now: float, days: int) -> None:
        """
        Remove spans that began longer ago than so many days.

        :param now: seconds since 1970.
        :raises Unavailable: that failed.
        """
        try:
            if not self._path.exists():
                return
            with locked(self._lock):
                fd = self._open(os.O_RDONLY)
                with os.fdopen(fd, "rb") as file:
                    lines = file.read()
                if (kept := recent(lines, now, days)) != lines:
                    write_atomically(self._path, kept)
        except OSError as e:
            raise Unavailable(f"the traces in {self._path} cannot be read: {e.strerror}") from None

    def _open(self, flags: int) -> int:
        fd = os.open(self._path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            self._check(fd)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _check(self, fd: int) -> None:
        """:raises Unavailable: it is something else than a file of spans that is ours alone."""
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise Unavailable(f"{self._path} must be a file of your own, which nobody else may open: chmod 600")
        if status.st_size and os.pread(fd, len(SPAN_BEGINS), 0) != SPAN_BEGINS:
            raise Unavailable(f"{self._path} is no file of traces: nothing was written to it")


class JournalSink:
    """
    The journal of systemd.

    :param path: of its socket.
    """

    def __init__(self, path: str = JOURNAL) -> None:
        self._path = path

    def write(self, line: bytes) -> None:
        """See :meth:`TraceSink.write`."""
        message = b"MESSAGE=%s\nPRIORITY=6\nSYSLOG_IDENTIFIER=%s\n" % (line.rstrip(b"\n"), IDENTIFIER.encode())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as journal:
                journal.connect(self._path)
                journal.send(message)
        except OSError as e:
            raise Unavailable(f"no trace can be written to the journal: {e.strerror}") from None


class SyslogSink:
    """The system's log."""

    def write(self, line: bytes) -> None:
        """See :meth:`TraceSink.write`."""
        syslog.openlog(IDENTIFIER, syslog.LOG_PID, syslog.LOG_USER)
        syslog.syslog(syslog.LOG_INFO, line.decode("utf-8", "replace").rstrip("\n"))
        syslog.closelog()


class OutputSink:
    """
    Our standard output, for whoever started us.

    :param output: writes to it.
    """

    def __init__(self, output: Callable[[bytes], None]) -> None:
        self._output = output

    def write(self, line: bytes) -> None:
        """See :meth:`TraceSink.write`."""
        self._output(line)


def make_sink(choice: SinkChoice, output: Callable[[bytes], None]) -> TraceSink:
    """:param output: writes to our standard output."""
    match choice.kind:
        case "file":
            return FileSink(Path(choice.path))
        case "journald":
            return JournalSink()
        case "syslog":
            return SyslogSink()
        case "stdout":
            return OutputSink(output)
