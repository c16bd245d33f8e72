"""A session's entry in the registry, by which every process of the home finds it."""

from __future__ import annotations

from twisted.logger import Logger

from ironcurtain.audit import AuditLog
from ironcurtain.errors import AuditUnavailable, IronCurtainError
from ironcurtain.home.layout import Home, SessionPaths
from ironcurtain.home.registry import Entry, Registry
from ironcurtain.process.identity import identify
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.parts import Services

_log = Logger()


async def open_audit(info: SessionInfo, paths: SessionPaths, services: Services) -> AuditLog:
    """
    :returns: the log, in which the session stands now.
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
    """Record why the session ended, as far as that can be written."""
    try:
        audit.append("end", reason=reason)
    except IronCurtainError as e:
        _log.error("session {number} ended unrecorded: {error}", number=number, error=e)
    await audit.close()


def entry(info: SessionInfo, paths: SessionPaths, control_socket: str) -> Entry:
    """
    :param control_socket: of this process; empty if it serves none.
    :returns: the entry of a session of this process.
    """
    owner = identify()
    return Entry(
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
    """A session's entry, as one of its parts: there from its start to its stop."""

    def __init__(self, home: Home, entry: Entry) -> None:
        self._registry, self._entry = Registry(home.registry), entry

    async def start(self) -> None:
        """Let every process find the session."""
        self._registry.add(self._entry)

    async def stop(self) -> None:
        """Let nobody find it any more."""
        self._registry.remove(self._entry.session_id)
