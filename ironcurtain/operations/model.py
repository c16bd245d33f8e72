"""What operations give back, as values that travel."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.escalation.model import Escalation
from ironcurtain.escalation.permission import Permission
from ironcurtain.home.settings import Settings, flatten


class EscalationView(msgspec.Struct, frozen=True, kw_only=True):
    """
    An escalation as people and programs see it.

    :param session: number of its session.
    :param outcome: empty while it is pending.
    :param raised_at: seconds since the epoch, as are ``expires_at`` and ``closed_at``; the last is 0 while pending.
    :param closing: greater than that of all that got their outcome before in its process; 0 while pending.
    :param scope: the calls for which an approval can be kept; empty if it cannot.
    :param kept: whether it was approved and that was kept.
    :param calls: how many equal calls wait for the one decision, or waited.
    """

    number: int
    session: int
    session_id: str
    label: str
    server: str
    tool: str
    arguments: dict[str, Any]
    digest: str
    rule: str
    reason: str
    policy_version: str
    raised_at: float
    expires_at: float
    outcome: str = ""
    by: str = ""
    closed_at: float = 0.0
    closing: int = 0
    scope: str = ""
    kept: bool = False
    calls: int = 1


def view(escalation: Escalation, session: int, label: str) -> EscalationView:
    """:returns: the view of an escalation in a session."""
    request = escalation.request
    return EscalationView(
        number=escalation.number,
        session=session,
        session_id=request.session_id,
        label=label,
        server=request.server,
        tool=request.tool,
        arguments=dict(request.arguments),
        digest=request.digest,
        rule=request.rule,
        reason=request.reason,
        policy_version=request.policy_version,
        raised_at=escalation.raised_at,
        expires_at=escalation.expires_at,
        outcome=str(escalation.outcome or ""),
        by=escalation.by,
        closed_at=escalation.closed_at,
        closing=escalation.closing,
        scope=request.scope.words if request.scope is not None else "",
        kept=escalation.kept,
        calls=escalation.calls,
    )


class PermissionView(msgspec.Struct, frozen=True, kw_only=True):
    """
    An approval that was kept, and stands until its session ends or somebody revokes it.

    :param number: the escalation's that was approved.
    :param session: number of its session.
    :param scope: the calls that nobody is asked about.
    :param since: seconds since the epoch.
    :param used: how many calls it permitted besides the one that was approved.
    """

    number: int
    session: int
    session_id: str
    label: str
    server: str
    tool: str
    scope: str
    by: str
    since: float
    used: int


def permission_view(permission: Permission, session_id: str, session: int, label: str) -> PermissionView:
    """:returns: the view of a permission of a session."""
    return PermissionView(
        number=permission.number,
        session=session,
        session_id=session_id,
        label=label,
        server=permission.scope.server,
        tool=permission.scope.tool,
        scope=permission.scope.words,
        by=permission.by,
        since=permission.since,
        used=permission.used,
    )


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """
    What reading the files again came to.

    :param changed: dotted names of settings that have another value now.
    :param restart: those among them that hold only when the daemon is started again.
    """

    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def reloaded(before: Settings, now: Settings) -> Reloaded:
    """:returns: the difference between two settings."""
    old, new = dict(flatten(before)), dict(flatten(now))
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return Reloaded(changed=tuple(changed), restart=tuple(name for name in changed if name.startswith("ssh.")))
