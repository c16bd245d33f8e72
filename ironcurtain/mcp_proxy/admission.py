"""From a verdict to permission: the call is recorded, a person is asked where need be, and the answer is used once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.audit import AuditLog
from ironcurtain.errors import AuditUnavailable, IronCurtainError, NotAllowed
from ironcurtain.escalation import Answer, EscalationQueue, EscalationRequest, Outcome, arguments_digest
from ironcurtain.escalation.grant import Binding
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.calls import CallDecided, CallEvent, CallFinished, CallRaised
from ironcurtain.policy import Decision, Verdict

REMINDER_SECONDS = 10.0
"""How often the caller hears that a person still decides: agents give up after 60 s of silence, some earlier."""

BREAKER_RULE = "circuit-breaker"

_REFUSALS = {
    Outcome.DENIED: ("denied-by-person", "ESCALATION DENIED: a person refused this call"),
    Outcome.EXPIRED: ("expired", "ESCALATION EXPIRED: nobody decided on this call in time"),
    Outcome.WITHDRAWN: ("withdrawn", "ESCALATION WITHDRAWN: this call is no longer waiting for a decision"),
    Outcome.UNATTENDED: ("nobody-to-ask", "ESCALATION DENIED: this call needs a person, and nobody is there to ask"),
}


class Refused(IronCurtainError):
    """
    The call is not made.

    :param status: for the audit: denied or withdrawn.
    :param why: the stable code for the agent.
    """

    code = "REFUSED"

    def __init__(self, status: str, why: str, text: str, rule: str) -> None:
        super().__init__(text)
        self.status, self.why, self.rule = status, why, rule


class OpenCall(msgspec.Struct, frozen=True):
    """
    A call that is under way.

    :param started: on the clock, in seconds.
    """

    id: str
    server: str
    tool: str
    started: float


class _Over(NamedTuple):
    call: OpenCall
    status: str
    result: bytes
    error: str
    duration: float


class Admission:
    """
    :param new_id: gives ids that are unique in the audit log.
    :param policy_version: the version that judges now.
    :param events: told of each call as it goes on.
    """

    log = Logger()

    def __init__(
        self,
        *,
        session_id: str,
        audit: AuditLog,
        escalations: EscalationQueue,
        clock: IReactorTime,
        new_id: Callable[[], str],
        policy_version: Callable[[], str],
        events: Callable[[CallEvent], None],
    ) -> None:
        self._session_id, self._audit, self._escalations, self._clock = session_id, audit, escalations, clock
        self._new_id, self._policy_version, self._events = new_id, policy_version, events
        self._over: list[_Over] = []

    def open(self, server: str, tool: str) -> OpenCall:
        """:returns: a new call."""
        return OpenCall(self._new_id(), server, tool, self._clock.seconds())

    def record(self, call: OpenCall, verdict: Verdict) -> int:
        """
        Record a call, before anything is done about it.

        :returns: the record's number.
        :raises Refused: the policy denies the call.
        :raises AuditUnavailable: it cannot be recorded, so it must not be made.
        """
        if self._over:
            self.flush()
        arguments, decision, rule, reason = verdict.arguments, verdict.decision, verdict.rule, verdict.reason
        sequence = self._audit.append(
            "call",
            callId=call.id,
            server=call.server,
            tool=call.tool,
            arguments=arguments,
            decision=decision,
            rule=rule,
            reason=reason,
            policyVersion=self._policy_version(),
        )
        self._events(CallRaised(call.id, call.server, call.tool, arguments, decision, rule, reason))
        if decision is Decision.DENY:
            why = BREAKER_RULE if rule == BREAKER_RULE else "denied-by-rule"
            raise Refused("denied", why, f"DENIED: {reason} (rule {rule})", rule)
        return sequence

    async def ask(self, call: OpenCall, verdict: Verdict, progress: Callable[[str], None] | None) -> None:
        """
        Put a recorded call before a person. When this returns, the call may be made, once.

        :param progress: hears every few seconds that the person still decides.
        :raises Refused: the call must not be made.
        :raises AuditUnavailable: the decision cannot be recorded, so the call must not be made.
        """
        version = self._policy_version()
        digest = arguments_digest(call.server, call.tool, verdict.arguments)
        request = EscalationRequest(
            session_id=self._session_id,
            call_id=call.id,
            server=call.server,
            tool=call.tool,
            arguments=verdict.arguments,
            reason=_told(verdict),
            rule=verdict.rule,
            policy_version=version,
            digest=digest,
        )
        answer = await self._answer(call, request, progress)
        sequence = self._audit.append(
            "decision", callId=call.id, number=answer.number, outcome=answer.outcome, by=answer.by
        )
        self._events(CallDecided(call.id, answer.number, answer.outcome, answer.by))
        if answer.outcome is not Outcome.APPROVED or answer.grant is None:
            why, text = _REFUSALS[answer.outcome]
            status = "withdrawn" if answer.outcome is Outcome.WITHDRAWN else "denied"
            raise Refused(status, why, f"{text} ({verdict.reason})", verdict.rule)
        await self._audit.durable(sequence)
        try:
            answer.grant.spend(Binding(self._session_id, digest, self._policy_version()), self._clock.seconds())
        except NotAllowed as e:
            raise Refused("denied", "expired", f"ESCALATION EXPIRED: {e}", verdict.rule) from None

    def durable(self, sequence: int) -> Deferred[None]:
        """:returns: fires once a record is on disk."""
        return self._audit.durable(sequence)

    def close(self, call: OpenCall, status: str, result: bytes = b"", error: str = "") -> None:
        """
        A call is over. That is recorded as soon as its caller has the result: before the next call, and in the
        reactor's next turn at the latest.

        :param status: success, error, denied, withdrawn, cancelled or failed.
        :param result: as the server gave it; only its size and digest are recorded.
        """
        if not self._over:
            self._clock.callLater(0, self.flush)
        self._over.append(_Over(call, status, result, error, self._clock.seconds() - call.started))

    def flush(self) -> None:
        """Record all calls that are over. One that cannot be recorded is lost, but no call follows it."""
        over, self._over = self._over, []
        for end in over:
            call = end.call
            fields: dict[str, object] = {
                "callId": call.id,
                "status": end.status,
                "durationMs": round(end.duration * 1000),
            }
            if end.result:
                fields |= {"size": len(end.result), "digest": hashlib.sha256(end.result).hexdigest()}
            if end.error:
                fields["error"] = end.error
            with suppress(AuditUnavailable):  # the log says so itself, and lets nothing through any more
                self._audit.append("outcome", **fields)
            self._events(CallFinished(call.id, call.server, call.tool, end.status, end.duration, len(end.result)))

    async def _answer(
        self, call: OpenCall, request: EscalationRequest, progress: Callable[[str], None] | None
    ) -> Answer:
        asking: Deferred[Answer] = self._escalations.ask(request)
        if progress is None or asking.called:
            return await asking
        reminder = LoopingCall(lambda: progress(f"waiting for a person to decide on {call.server} {call.tool}"))
        reminder.clock = self._clock
        reminder.start(REMINDER_SECONDS).addErrback(
            lambda failure: self.log.failure("the caller could not be told that its call waits", failure)
        )
        try:
            return await asking
        finally:
            if reminder.running:
                reminder.stop()


def _told(verdict: Verdict) -> str:
    """:returns: why a person is asked, with what the arguments do not say themselves, such as a remote's address."""
    written = codec.encode(verdict.arguments).decode()
    meant = [f"{r.argument or r.role} means {r.value}" for r in verdict.resources if r.value not in written]
    return "; ".join([verdict.reason, *meant])
