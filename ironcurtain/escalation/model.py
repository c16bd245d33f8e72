"""The values of an escalation: what is asked, its states, its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ironcurtain.escalation.grant import Grant
from ironcurtain.escalation.permission import Permission, Scope


class Outcome(StrEnum):
    """How an escalation ended. The values are stable and appear in results, audit and files."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    UNATTENDED = "unattended"
    TOO_MANY = "too-many"


@dataclass(frozen=True, slots=True)
class EscalationRequest:
    """
    A call that needs a person's decision.

    :param call_id: names the call in the audit.
    :param arguments: exactly those that will be forwarded.
    :param reason: why the policy asks.
    :param rule: the rule that asks.
    :param digest: of server, tool and arguments (:func:`~ironcurtain.escalation.grant.arguments_digest`).
    :param scope: the calls for which an approval can be kept; ``None`` if it is good for this call only.
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


@dataclass(frozen=True, slots=True)
class Escalation:
    """
    A request with its place in the queue.

    :param id: unguessable, for files and programs.
    :param number: for people; counted over the whole home and never reused.
    :param raised_at: seconds since the epoch, as is ``expires_at``.
    :param outcome: ``None`` while it is pending.
    :param by: who decided; empty if nobody did.
    :param closed_at: seconds since the epoch; 0 while it is pending.
    :param closing: greater than that of all that got their outcome before; 0 while it is pending.
    :param kept: whether the approval stands for more calls than this one.
    :param calls: how many equal calls wait for the one decision, or waited.
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


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What became of a question.

    :param number: the escalation's; 0 if none was raised, because nobody could answer, nobody had to, or too many wait.
    :param grant: only with an approval.
    :param permission: number of the earlier escalation whose approval was kept and permits this too; 0 if a person was
        asked.
    """

    outcome: Outcome
    number: int = 0
    by: str = ""
    grant: Grant | None = None
    permission: int = 0


@dataclass(frozen=True, slots=True)
class Raised:
    """A new escalation is pending."""

    escalation: Escalation


@dataclass(frozen=True, slots=True)
class Counted:
    """Another number of equal calls waits for the decision on an escalation."""

    escalation: Escalation


@dataclass(frozen=True, slots=True)
class Closed:
    """
    An escalation got its outcome.

    :param permission: what its approval permits from now on, if that was kept.
    """

    escalation: Escalation
    permission: Permission | None = None


@dataclass(frozen=True, slots=True)
class Revoked:
    """
    A permission stands no more.

    :param by: who took it back.
    """

    permission: Permission
    by: str


Change = Raised | Counted | Closed | Revoked
