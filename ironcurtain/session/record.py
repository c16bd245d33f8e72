"""The audit log of a session, from its first record to its last."""

from __future__ import annotations

from twisted.logger import Logger

from ironcurtain.audit import AuditLog
from ironcurtain.errors import AuditUnavailable, IronCurtainError
from ironcurtain.home.layout import SessionPaths
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
