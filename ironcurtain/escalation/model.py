"""The values of an escalation: its request, state and answer, and the changes of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from ironcurtain.escalation.forms import Form
from ironcurtain.escalation.grant import Grant
from ironcurtain.escalation.permission import Permission, Scope
from ironcurtain.policy.verdict import Resource, Reversal


class Outcome(StrEnum):
    """How an escalation ended. The values are stable: they appear in results, the audit log and files."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ANSWERED = "answered"
    """A person filled in the form."""
    CANCELLED = "cancelled"
    """A person neither filled in the form nor declined to."""
    UNATTENDED = "unattended"
    TOO_MANY = "too-many"


class AutomaticCall(msgspec.Struct, frozen=True):
    """
    What the auto-approver may know of a call that it may approve.

    :param reason: why the policy's rules escalate, in their words.
    """

    reason: str
    resources: tuple[Resource, ...]


class EscalationRequest(msgspec.Struct, frozen=True):
    """
    A call that needs a person's decision, or a form that a server wants to be filled in.

    :param call_id: the identifier of the call in the audit log.
    :param arguments: exactly those that will be forwarded.
    :param reason: why the policy escalates.
    :param rule: the rule that escalates.
    :param digest: the digest of server, tool and arguments (:func:`~ironcurtain.escalation.grant.arguments_digest`).
    :param scope: the calls that a kept approval covers; ``None`` if the approval cannot be kept.
    :param category: as ``scope``, of all calls of the same kind; ``None`` if it is of none.
    :param reversal: whether the call can be undone.
    :param approvals: number of different principals who must approve. With several, no approval can be kept.
    :param automatic: ``None`` if only a person may approve.
    :param form: the form; it is answered, never approved.
    :param diff: how the call changes a file that is there now, as far as it is known.
    """

    session_id: str
    call_id: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    reason: str
    rule: str
    policy_version: str
    digest: str
    scope: Scope | None = None
    category: Scope | None = None
    reversal: Reversal = Reversal.UNKNOWN
    approvals: int = 1
    automatic: AutomaticCall | None = None
    form: Form | None = None
    diff: str = ""


class Escalation(msgspec.Struct, frozen=True):
    """
    A request in the queue, or one that has its outcome.

    :param id: an unguessable identifier, for files and programs.
    :param number: the identifier for people, unique in IronCurtain's home and never reused.
    :param raised_at: seconds since the epoch, like ``expires_at`` and ``closed_at``.
    :param outcome: ``None`` while it is pending.
    :param by: who decided; empty if it had another outcome.
    :param closed_at: when it got its outcome; 0 while it is pending.
    :param closing: a number that increases with each escalation that gets its outcome; 0 while it is pending.
    :param kept: whether the approval was kept for other calls.
    :param calls: the number of equal calls that wait, or waited, for this decision.
    :param approved_by: those whose approval counts so far.
    """

    id: str
    number: int
    request: EscalationRequest
    raised_at: float
    expires_at: float
    outcome: Outcome | None = None
    by: str = ""
    closed_at: float = 0.0
    closing: int = 0
    kept: bool = False
    calls: int = 1
    approved_by: tuple[str, ...] = ()

    @property
    def deciders(self) -> str:
        """Everybody who decided; empty if nobody did."""
        return " and ".join(self.approved_by) if self.outcome is Outcome.APPROVED else self.by


@dataclass(frozen=True, slots=True)
class Answer:
    """
    The answer to a request.

    :param number: the number of the escalation; 0 if none was raised, because nobody is attending, a kept approval
        covers the call, or too many escalations are pending.
    :param grant: set for an approval and a filled form only.
    :param permission: the number of the earlier escalation whose kept approval covers the call; 0 if there is none.
    :param content: what a person filled in. It is kept nowhere else.
    """

    outcome: Outcome
    number: int = 0
    by: str = ""
    grant: Grant | None = None
    permission: int = 0
    content: Mapping[str, Any] | None = field(default=None, repr=False)


class Raised(msgspec.Struct, frozen=True):
    """A new escalation is pending."""

    escalation: Escalation


class CallsCounted(msgspec.Struct, frozen=True):
    """The number of equal calls that wait for an escalation has changed."""

    escalation: Escalation


class ApprovalAdded(msgspec.Struct, frozen=True):
    """Somebody approved an escalation, which still needs the approval of another principal."""

    escalation: Escalation


class Closed(msgspec.Struct, frozen=True):
    """
    An escalation got its outcome.

    :param permission: the permission, if its approval was kept.
    """

    escalation: Escalation
    permission: Permission | None = None


class Revoked(msgspec.Struct, frozen=True):
    """
    A permission was revoked.

    :param by: who revoked it.
    """

    permission: Permission
    by: str


Change = Raised | CallsCounted | ApprovalAdded | Closed | Revoked
