"""The values that operations return, which can be sent to other processes."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.escalation.forms import Form
from ironcurtain.escalation.model import Escalation
from ironcurtain.escalation.permission import Permission
from ironcurtain.home.settings import Settings, flatten
from ironcurtain.policy.verdict import Reversal
from ironcurtain.session.events import EscalationRaised

LOOK = "'ironcurtain escalations show {0}' shows it (over SSH: escalations show {0})"
"""The command that shows an escalation completely."""

DECISION_SECONDS = 10.0
"""How long a decision may be on its way to the process of its session, which refuses it afterwards."""

Name = int | str
"""A session's number or id."""


class EscalationView(msgspec.Struct, frozen=True, kw_only=True):
    """
    An escalation as shown to people and programs.

    :param session: number of its session.
    :param outcome: empty while it is pending.
    :param raised_at: seconds since the epoch, as are ``expires_at`` and ``closed_at``; the last is 0 while pending.
    :param closing: sequence number of its closing in its process; 0 while pending.
    :param scope: the calls that a kept approval would cover; empty if it cannot be kept.
    :param kept: whether it was approved and the approval kept.
    :param calls: number of equal calls that wait, or waited, for the decision.
    :param undo: whether the call can be undone: :class:`~ironcurtain.policy.verdict.Reversal`.
    :param by: who decided; all of them, if several had to approve.
    :param approvals: number of different people who must approve.
    :param approved_by: those whose approval counts so far.
    :param form: what a server asks a person for, in place of a call's decision.
    :param diff: how the call changes a file that is there now, as a unified diff; empty: unknown, or not at all.
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
    undo: str = Reversal.UNKNOWN.value
    approvals: int = 1
    approved_by: tuple[str, ...] = ()
    form: Form | None = None
    diff: str = ""


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
        by=escalation.deciders,
        closed_at=escalation.closed_at,
        closing=escalation.closing,
        scope=request.scope.words if request.scope is not None else "",
        kept=escalation.kept,
        calls=escalation.calls,
        undo=request.reversal.value,
        approvals=request.approvals,
        approved_by=escalation.approved_by,
        form=request.form,
        diff=request.diff,
    )


class PermissionView(msgspec.Struct, frozen=True, kw_only=True):
    """
    A kept approval, in force until its session ends or it is revoked.

    :param number: number of the approved escalation.
    :param session: number of its session.
    :param scope: the calls that it permits.
    :param since: seconds since the epoch.
    :param used: number of calls that it permitted, without the approved one.
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


def raised_event(view: EscalationView) -> EscalationRaised:
    """:returns: the event that raised an escalation, which a reader may have missed."""
    shared = set(EscalationRaised.__struct_fields__) & set(view.__struct_fields__)
    return EscalationRaised(call_id="", **{name: getattr(view, name) for name in shared})


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
    The result of reading the configuration files again.

    :param changed: dotted names of changed settings.
    :param restart: those among them that require a restart of the daemon.
    """

    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def reloaded(before: Settings, now: Settings) -> Reloaded:
    """:returns: the difference between two settings."""
    old, new = dict(flatten(before)), dict(flatten(now))
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return Reloaded(changed=tuple(changed), restart=tuple(name for name in changed if name.startswith("ssh.")))
