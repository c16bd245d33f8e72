"""What the session's events say of its escalations. Pure."""

from __future__ import annotations

from ironcurtain.escalation import Raised
from ironcurtain.escalation.model import Change
from ironcurtain.session import events


def told(change: Change) -> events.SessionEvent:
    """:returns: the event for a change in the queue of escalations."""
    escalation = change.escalation
    if not isinstance(change, Raised):
        return events.EscalationClosed(number=escalation.number, outcome=str(escalation.outcome), by=escalation.by)
    request = escalation.request
    return events.EscalationRaised(
        number=escalation.number,
        call_id=request.call_id,
        server=request.server,
        tool=request.tool,
        arguments=dict(request.arguments),
        digest=request.digest,
        rule=request.rule,
        reason=request.reason,
        raised_at=escalation.raised_at,
        expires_at=escalation.expires_at,
    )
