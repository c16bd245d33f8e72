"""What operations give back, as values that travel. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.escalation.model import Escalation


class EscalationView(msgspec.Struct, frozen=True, kw_only=True):
    """
    An escalation as people and programs see it.

    :param session: number of its session.
    :param outcome: empty while it is pending.
    :param raised_at: seconds since the epoch, as are ``expires_at`` and ``closed_at``; the last is 0 while pending.
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
    )
