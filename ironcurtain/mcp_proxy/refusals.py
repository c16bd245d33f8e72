"""Why a call is not made: codes for the agent and the audit log, and texts for people."""

from __future__ import annotations

from ironcurtain.errors import IronCurtainError
from ironcurtain.escalation import Outcome
from ironcurtain.mcp_proxy.pins import WITHHELD
from ironcurtain.policy.judgement import NO_RULE
from ironcurtain.policy.unannotated import RULE as UNANNOTATED
from ironcurtain.policy.verdict import Decision, Verdict

BREAKER_RULE = "circuit-breaker"

WITHHELD_CODE = "tool-withheld"
"""Text for a call of a tool whose definition waits for a person."""

_REFUSALS = {
    Outcome.DENIED: ("denied-by-person", "ESCALATION DENIED: a person refused this call"),
    Outcome.EXPIRED: ("expired", "ESCALATION EXPIRED: nobody decided on this call in time"),
    Outcome.WITHDRAWN: ("withdrawn", "ESCALATION WITHDRAWN: this call is no longer waiting for a decision"),
    Outcome.CANCELLED: ("cancelled-by-person", "ESCALATION CANCELLED: a person did not answer"),
    Outcome.UNATTENDED: ("nobody-to-ask", "ESCALATION DENIED: this call needs a person, and nobody is there to ask"),
    Outcome.TOO_MANY: (
        "too-many-questions",
        "TOO MANY QUESTIONS: this call needs a person, who has too many of this session's to answer already: wait for "
        "their answers, or do without",
    ),
}


class CallRefused(IronCurtainError):
    """
    The call is not made.

    :param status: the status for the audit log: denied or withdrawn.
    :param why: the stable code for the agent.
    """

    code = "REFUSED"

    def __init__(self, status: str, why: str, text: str, rule: str) -> None:
        super().__init__(text)
        self.status, self.why, self.rule = status, why, rule


def refuse_denied(verdict: Verdict) -> None:
    """
    Refuse what the policy denies.

    :raises CallRefused: it denies the call.
    """
    if verdict.decision is not Decision.DENY:
        return
    rule, reason = verdict.rule, verdict.reason
    if rule in WITHHELD:
        raise CallRefused("denied", WITHHELD_CODE, f"TOOL WITHHELD: {reason} (rule {rule})", rule)
    why = BREAKER_RULE if rule == BREAKER_RULE else "denied-by-rule"
    raise CallRefused("denied", why, f"DENIED: {reason} (rule {rule})", rule)


def undecided(outcome: Outcome, server: str, verdict: Verdict) -> CallRefused:
    """:returns: the refusal of a call that a person was to decide on and did not approve."""
    why, text = _REFUSALS[outcome]
    status = "withdrawn" if outcome is Outcome.WITHDRAWN else "denied"
    advice = _advice(server, verdict) if outcome is Outcome.UNATTENDED else ""
    return CallRefused(status, why, f"{text} ({verdict.reason}){advice}", verdict.rule)


def _advice(server: str, verdict: Verdict) -> str:
    """:returns: what spares a person the question, where it comes from what nobody has said about a server."""
    if UNANNOTATED in verdict.asking:
        return f". A person can describe its tools: ironcurtain mcp annotate {server}"
    return ". A rule for this server in policy.toml can allow it" if NO_RULE in verdict.asking else ""
