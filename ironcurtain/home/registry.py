"""
The registry of live sessions: one file each, so that every process of a home sees all sessions.

The files have the usual members (``sessionId escalationDir label startedAt pid``) and IronCurtain's own; unknown
members are ignored.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from ironcurtain.errors import ProtocolViolation
from ironcurtain.files.atomic import publish_once
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.process.identity import ProcessIdentity, started_at
from ironcurtain.text.display import shorten

FILE_LIMIT = 64 * 1024
"""Maximum number of bytes read of an entry."""

SLACK = 2.0
"""
Tolerance in seconds between a process's start and its entry. A process that started later than that reused the pid of
the entry's dead owner; used only for entries without a start time of their own.
"""

LABEL_LIMIT = 60
"""Maximum length in characters of a label (it fits a line of a console)."""


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    One live session.

    :param escalation_dir: directory of its request and response files.
    :param label: for people, on one line.
    :param started_at: UTC in ISO 8601.
    :param control_socket: UNIX socket of its owner's control API; empty if it has none.
    :param host: the host of a fleet that it runs on; empty: this one. Its process here is the daemon.
    """

    session_id: str
    escalation_dir: str
    label: str
    started_at: str
    pid: int
    pid_start_time: int = 0
    boot_id: str = ""
    number: int = 0
    kind: str = ""
    control_socket: str = ""
    host: str = ""

    @property
    def owner(self) -> ProcessIdentity:
        """The process that owns the session."""
        return ProcessIdentity(self.pid, self.pid_start_time, self.boot_id)


def label(agent: str, task: str) -> str:
    """:returns: a session's label: the agent, and its task shortened, without control characters."""
    return f"{agent}: {shorten(task, LABEL_LIMIT - len(agent) - 2) or 'interactive'}"


def label_by_message(text: str, message: str) -> str:
    """
    :param text: a session's label.
    :param message: its first message; empty: there was none yet.
    :returns: a label with that message in it, if there is no task that tells the session from others.
    """
    agent = text.removesuffix(label("", ""))
    return text if agent == text else label(agent, message)


class SessionRegistry:
    """:param directory: ``pty-registry`` of the home."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def add(self, entry: SessionEntry) -> bool:
        """:returns: whether the entry was published; ``False`` if its session is registered already."""
        return publish_once(self._path(entry.session_id, entry.host), msgspec.json.encode(entry))

    def remove(self, session_id: str, host: str = "") -> None:
        """Remove an entry; no effect if there is none."""
        self._path(session_id, host).unlink(missing_ok=True)

    def live(self) -> list[SessionEntry]:
        """:returns: the sessions whose owners are alive, by number. Entries of dead owners are removed."""
        return self._live(self._paths())

    def here(self) -> list[SessionEntry]:
        """:returns: those of this host, whose processes are ours; others, which can be thousands, are not even read."""
        return [entry for entry in self._live(path for path in self._paths() if "." not in path.stem) if not entry.host]

    def _paths(self) -> list[Path]:
        return sorted(self.directory.glob("session-*.json"))

    def _live(self, paths: Iterable[Path]) -> list[SessionEntry]:
        entries = []
        alive = cache(_alive)  # the daemon owns all sessions of other hosts
        for path, entry in self._read(paths):
            if alive(entry.owner) and (entry.pid_start_time or started_at(entry.pid) < path.lstat().st_mtime + SLACK):
                entries.append(entry)
            else:
                path.unlink(missing_ok=True)
        return sorted(entries, key=lambda entry: (entry.number, entry.started_at))

    def _path(self, session_id: str, host: str) -> Path:
        name = f"{host}.{session_id}" if host else session_id  # another host cannot name a session of this one
        return self.directory / f"session-{name}.json"

    def _read(self, paths: Iterable[Path]) -> Iterator[tuple[Path, SessionEntry]]:
        for path in paths:
            try:
                entry = msgspec.json.decode(read_small_file(path, FILE_LIMIT), type=SessionEntry)
                number = HostNumber(entry.host, entry.number) if entry.host else entry.number
            except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ProtocolViolation):
                continue
            yield path, msgspec.structs.replace(entry, number=number)


def _alive(owner: ProcessIdentity) -> bool:
    return owner.alive


def read_small_file(path: Path, limit: int) -> bytes:
    """
    Read a file that another program may have written, without following links or blocking on a pipe.

    :raises OSError: it is missing, not a regular file, somebody else's, or larger than ``limit`` bytes.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size > limit:
            raise OSError(f"{path} is not a regular file of this user, or larger than {limit} bytes")
        return file.read(limit)
