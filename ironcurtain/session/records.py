"""A session's records on disk: its log for people, its audit log, and its entry in the registry of live sessions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from twisted.logger import Logger

from ironcurtain.audit import AuditLog
from ironcurtain.audit.chain import timestamp
from ironcurtain.errors import AuditUnavailable, IronCurtainError
from ironcurtain.home.layout import Home, SessionPaths
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.process.identity import identify
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.parts import Services
from ironcurtain.text.display import one_line

_log = Logger()


async def open_audit(info: SessionInfo, paths: SessionPaths, services: Services) -> AuditLog:
    """
    Open a session's audit log and record the session's start.

    :returns: the log.
    :raises AuditUnavailable: it cannot be written.
    """
    audit = AuditLog(paths.audit, info.id, services.redactor, services.clock, services.now, services.in_thread)
    try:
        audit.append("session", number=info.number, kindOfSession=info.kind, workspace=info.workspace)
    except AuditUnavailable:
        await audit.close()
        raise
    return audit


async def close_audit(audit: AuditLog, number: int, reason: str) -> None:
    """Record why the session ended, if possible."""
    try:
        audit.append("end", reason=reason)
    except IronCurtainError as e:
        _log.error("the end of session {number} could not be recorded: {error}", number=number, error=e)
    await audit.close()


def entry(info: SessionInfo, paths: SessionPaths, control_socket: str) -> SessionEntry:
    """
    :param control_socket: control socket of this process; empty if it has none.
    :returns: the registry entry of a session of this process.
    """
    owner = identify()
    return SessionEntry(
        session_id=info.id,
        escalation_dir=str(paths.escalations),
        label=info.label,
        started_at=info.started_at,
        pid=owner.pid,
        pid_start_time=owner.start_time,
        boot_id=owner.boot_id,
        number=info.number,
        kind=info.kind,
        control_socket=control_socket,
    )


class Registration:
    """A session's registry entry, present from the session's start to its stop."""

    def __init__(self, home: Home, entry: SessionEntry) -> None:
        self._registry, self._entry = SessionRegistry(home.registry), entry

    async def start(self) -> None:
        """Add the entry."""
        self._registry.add(self._entry)

    async def stop(self) -> None:
        """Remove the entry."""
        self._registry.remove(self._entry.session_id)


TEXT_LIMIT = 2000
"""Maximum length in characters of one line's text."""


class SessionLog:
    """
    Writes lines to a session's log. A line that cannot be written is dropped; the first failure is logged by this
    process.

    :param now: returns seconds since the epoch.
    :param redactor: redacts every line.
    """

    log = Logger()

    def __init__(self, path: Path, now: Callable[[], float], redactor: Redactor) -> None:
        self._path, self._now, self._redactor = path, now, redactor
        self._fd = -1
        self._failed = False

    def open(self) -> None:
        """Create the file, or continue it."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, 0o600)

    def close(self) -> None:
        """Close the file. Later lines are dropped."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def write(self, source: str, text: str) -> None:
        """
        Write one line.

        :param source: the source in a word.
        :param text: any text; it becomes one line that is safe to show.
        """
        if self._fd < 0:
            return
        clean = one_line(self._redactor.value(text, TEXT_LIMIT), TEXT_LIMIT)
        try:
            os.write(self._fd, f"{timestamp(self._now())} {source}: {clean}\n".encode())
        except OSError as e:
            if not self._failed:
                self.log.error("{path} cannot be written: {error}", path=self._path, error=e)
            self._failed = True
