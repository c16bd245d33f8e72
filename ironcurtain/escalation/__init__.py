"""
Escalations: the queue of one session, its grants, and the files through which other programs answer.

The queue has to be imported from its own module: what only shows escalations needs no event loop.
"""

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

__all__ = [
    "Answer",
    "ApprovalAdded",
    "CallsCounted",
    "Closed",
    "Escalation",
    "EscalationRequest",
    "Grant",
    "Outcome",
    "Permission",
    "Raised",
    "Revoked",
    "Scope",
    "arguments_digest",
]
