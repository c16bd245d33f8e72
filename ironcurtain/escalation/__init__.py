"""Escalations: the queue of one session, its grants, and the files through which other programs answer."""

from ironcurtain.escalation.grant import Grant, arguments_digest
from ironcurtain.escalation.model import (
    Answer,
    ApprovalAdded,
    CallsCounted,
    Closed,
    Escalation,
    EscalationRequest,
    Outcome,
    Raised,
    Revoked,
)
from ironcurtain.escalation.permission import Permission, Scope
from ironcurtain.escalation.queue import EscalationQueue, closing_numbers

__all__ = [
    "Answer",
    "ApprovalAdded",
    "CallsCounted",
    "Closed",
    "Escalation",
    "EscalationQueue",
    "EscalationRequest",
    "Grant",
    "Outcome",
    "Permission",
    "Raised",
    "Revoked",
    "Scope",
    "arguments_digest",
    "closing_numbers",
]
