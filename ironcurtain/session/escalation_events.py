"""Changes in the queue of escalations, as events of their session."""

from __future__ import annotations

import msgspec

from ironcurtain.escalation.model import ApprovalAdded, CallsCounted, Change, Closed, Revoked
from ironcurtain.session import events

ARGUMENTS_LIMIT = 16 * 1024
"""Maximum size in bytes of arguments in an event (more than a banner shows; 2000 events stay small)."""

_encoder = msgspec.json.Encoder()


def escalation_event(change: Change) -> events.SessionEvent:
    """:returns: the event for a change in the queue of escalations."""
    if isinstance(change, Revoked):
        permission = change.permission
        return events.PermissionRevoked(number=permission.number, scope=permission.scope.words, by=change.by)
    escalation, request = change.escalation, change.escalation.request
    if isinstance(change, Closed):
        kept = change.permission.scope.words if change.permission is not None else ""
        return events.EscalationClosed(
            number=escalation.number, outcome=str(escalation.outcome), by=escalation.deciders, kept=kept
        )
    if isinstance(change, CallsCounted):
        return events.EscalationCounted(number=escalation.number, calls=escalation.calls)
    if isinstance(change, ApprovalAdded):
        return events.EscalationApproved(number=escalation.number, by=escalation.approved_by[-1])
    size = len(_encoder.encode(request.arguments))
    size += 0 if request.form is None else len(_encoder.encode(request.form))
    return events.EscalationRaised(
        number=escalation.number,
        call_id=request.call_id,
        server=request.server,
        tool=request.tool,
        arguments=dict(request.arguments) if size <= ARGUMENTS_LIMIT else {},
        digest=request.digest,
        rule=request.rule,
        reason=request.reason,
        raised_at=escalation.raised_at,
        expires_at=escalation.expires_at,
        scope=request.scope.words if request.scope is not None else "",
        omitted=size if size > ARGUMENTS_LIMIT else 0,
        calls=escalation.calls,
        undo=request.reversal.value,
        approvals=request.approvals,
        approved_by=escalation.approved_by,
        form=request.form if size <= ARGUMENTS_LIMIT else None,
        diff=request.diff,
    )
