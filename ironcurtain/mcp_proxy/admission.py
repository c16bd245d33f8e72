"""Turn a verdict into permission for one call: record it, ask a person if required, and use the answer once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import AuditUnavailable, NotAllowed
from ironcurtain.escalation import Answer, EscalationRequest, Scope, arguments_digest
from ironcurtain.escalation.forms import Form
from ironcurtain.escalation.grant import Binding
from ironcurtain.escalation.model import ApprovalAdded, AutomaticCall, Change, Closed, Revoked
from ironcurtain.escalation.permission import make_scope
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.mcp_proxy.calls import CallDecided, CallEvent, CallFinished, CallRaised
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.overwriting import change
from ironcurtain.mcp_proxy.reasons import reason_for
from ironcurtain.mcp_proxy.refusals import CallRefused, undecided
from ironcurtain.policy.verdict import Automatic, Reversal, Verdict
from ironcurtain.services.asyncio_bridge import soon

REMINDER_SECONDS = 10.0
"""Seconds between progress reports while a person decides. Agents time out after 60 s of silence, some earlier."""

_IRREVERSIBLE = ("push", "delete", "remove", "send", "publish", "merge", "reset")
"""Words in the names of tools whose effect cannot be taken back, whatever their server says about them."""


class OpenCall(msgspec.Struct, frozen=True):
    """
    A call in progress.

    :param started: on the clock, in seconds.
    :param kind: of its record: a ``call`` of an agent, or a ``question`` of a server, of which agents' activity has no
        events.
    """

    id: str
    server: str
    tool: str
    started: float
    kind: str = "call"


class _Over(NamedTuple):
    call: OpenCall
    status: str
    result: bytes
    error: str
    duration: float


class CallAdmission:
    """
    :param new_id: returns ids that are unique in the audit log.
    :param policy_version: returns the version of the policy in force.
    :param events: called with each event of a call.
    :param soon: runs a function in a later turn of the reactor.
    :param home: real path of the user's home directory.
    :param shown: returns the name of a path for people.
    :param has_snapshot: returns whether there is a snapshot of the workspace to which it can be restored.
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
        soon: Callable[[Callable[[], None]], None] = soon,
        home: str = "/",
        shown: Callable[[str], str] = str,
        has_snapshot: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session_id, self._audit, self._escalations, self._clock = session_id, audit, escalations, clock
        self._new_id, self._policy_version, self._events = new_id, policy_version, events
        self._soon, self._home, self._shown, self._has_snapshot = soon, home, shown, has_snapshot
        self._over: list[_Over] = []
        self._repeats: list[tuple[OpenCall, int, bool]] = []
        self._untold: list[CallEvent] = []
        escalations.subscribe(self._approvals_changed)

    def open(self, server: str, tool: str, kind: str = "call") -> OpenCall:
        """:returns: a new call."""
        return OpenCall(self._new_id(), server, tool, self._clock.seconds(), kind)

    def record(self, call: OpenCall, verdict: Verdict, creates: tuple[str, ...] | None = None) -> int:
        """
        Record a call, before it has any effect.

        :param creates: real paths that it would create; ``None`` if it writes no file.
        :returns: the record's number.
        :raises AuditUnavailable: it cannot be recorded, so it must not be made.
        """
        arguments, decision, rule, reason = verdict.arguments, verdict.decision, verdict.rule, verdict.reason
        fields: dict[str, object] = {
            "callId": call.id,
            "server": call.server,
            "tool": call.tool,
            "arguments": arguments,
            "decision": decision,
            "rule": rule,
            "reason": reason,
            "policyVersion": self._policy_version(),
            "undo": self._reversal(verdict),
            **({} if creates is None else {"creates": creates}),
        }
        sequence = self._audit.extend((*self._outcomes(), (call.kind, fields)))
        self._tell(call, CallRaised(call.id, call.server, call.tool, arguments, decision, rule, reason))
        return sequence

    async def ask(
        self,
        call: OpenCall,
        verdict: Verdict,
        progress: Callable[[str], None] | None,
        tool: ToolDefinition | None = None,
        *,
        scope: Scope | None = None,
        form: Form | None = None,
        category: tuple[str, str] | None = None,
    ) -> Answer:
        """
        Ask a person about a recorded call, unless a kept approval covers it. When this returns, the call may be made
        once.

        :param progress: called every few seconds while the person decides.
        :param tool: the tool; ``None`` for another request.
        :param scope: the requests that a kept approval covers, if there is no tool.
        :param category: the name of the category of calls that a kept approval may cover instead, and what it has, in
            words.
        :param form: what a person fills in, in place of an approval.
        :returns: the answer, which is an approval, or has the form's values.
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
            reason=reason_for(verdict),
            rule=verdict.rule,
            policy_version=version,
            digest=digest,
            reversal=self._reversal(verdict),
            category=None if category is None else _category(call.server, *category, version),
            scope=scope if tool is None or verdict.approvals > 1 else self._scope(call, verdict, tool, version),
            approvals=verdict.approvals,
            automatic=None if tool is None else _automatic(verdict, tool),
            form=form,
            diff="" if tool is None else change(verdict.arguments),
        )
        answer = await self._answer(call, request, progress)
        unasked = {"permission": answer.permission} if answer.permission else {}
        sequence = self._audit.append(
            "decision", callId=call.id, number=answer.number, outcome=answer.outcome, by=answer.by, **unasked
        )
        self._tell(call, CallDecided(call.id, answer.number, answer.outcome, answer.by, answer.permission))
        if answer.grant is None:
            raise undecided(answer.outcome, call.server, verdict)
        await self._audit.durable(sequence)
        try:
            answer.grant.spend(Binding(self._session_id, digest, self._policy_version()), self._clock.seconds())
        except NotAllowed as e:
            raise CallRefused("denied", "expired", f"ESCALATION EXPIRED: {e}", verdict.rule) from None
        return answer

    def durable(self, sequence: int) -> Deferred[None]:
        """:returns: fires once a record is on disk."""
        return self._audit.durable(sequence)

    def close(self, call: OpenCall, status: str, result: bytes = b"", error: str = "") -> None:
        """
        End a call. The end is recorded as soon as the caller has the result, and before the next call.

        :param status: success, error, denied, withdrawn, cancelled or failed.
        :param result: the server's result; only its size and digest are recorded.
        """
        duration = self._clock.seconds() - call.started
        self._over.append(_Over(call, status, result, error, duration))
        self._tell(call, CallFinished(call.id, call.server, call.tool, status, duration, len(result)))

    def repeated(self, call: OpenCall, count: int, allowed: bool) -> None:
        """
        Count calls that equal a recorded one and got the same answer. They are recorded with the next record.

        :param allowed: whether they were made.
        """
        self._repeats.append((call, count, allowed))

    def unrecorded(self, party: str, count: int) -> None:
        """Record that so many refusals of connections and requests of a party have no record of their own."""
        with suppress(AuditUnavailable):  # the audit log reports the error itself, and stops all further calls
            self._audit.append("unrecorded", party=party, count=count)

    def flush(self) -> None:
        """
        Record the ends of calls, and send their events. If an end cannot be recorded it is lost, but no further call is
        made.
        """
        if self._over or self._repeats:
            with suppress(AuditUnavailable):  # the audit log reports the error itself, and stops all further calls
                self._audit.extend(self._outcomes())
        untold, self._untold = self._untold, []
        for event in untold:
            self._events(event)

    def _outcomes(self) -> list[tuple[str, dict[str, object]]]:
        over, self._over, repeats, self._repeats = self._over, [], self._repeats, []
        counts = [
            (
                "repeats",
                {"callId": call.id, "server": call.server, "tool": call.tool, "count": count, "allowed": allowed},
            )
            for call, count, allowed in repeats
        ]
        return [("outcome", _outcome(end)) for end in over] + counts

    def _tell(self, call: OpenCall, event: CallEvent) -> None:
        if call.kind != "call":
            return
        self._untold.append(event)
        if len(self._untold) == 1:
            self._soon(self.flush)

    def _scope(self, call: OpenCall, verdict: Verdict, tool: ToolDefinition, version: str) -> Scope | None:
        return make_scope(
            call.server,
            call.tool,
            verdict,
            definition=tool.digest,
            schema=tool.schema,
            policy_version=version,
            home=self._home,
            is_directory=os.path.isdir,
            shown=self._shown,
        )

    def _reversal(self, verdict: Verdict) -> Reversal:
        if verdict.reversal is Reversal.SNAPSHOT and not self._has_snapshot():
            return Reversal.NO_SNAPSHOT
        return verdict.reversal

    def _approvals_changed(self, change: Change) -> None:
        """Record each approval of several, and what is permitted from now on, before any call uses it."""
        if isinstance(change, ApprovalAdded):
            self._record_approval(change.escalation.number, change.escalation.approved_by[-1])
        elif isinstance(change, Closed) and len(change.escalation.approved_by) > 1:
            self._record_approval(change.escalation.number, change.escalation.by)
        elif isinstance(change, Closed) and change.permission is not None:
            scope = change.permission.scope
            fields: dict[str, object] = {
                "server": scope.server,
                "tool": scope.tool,
                "rules": sorted(scope.rules),
                "policyVersion": scope.policy_version,
                "places": [{"role": place.role, "value": place.value, "below": place.below} for place in scope.places],
                "ways": dict(scope.fixed),
                "bounds": dict(scope.bounds),
                "words": scope.words,
            }
            self._record_permission("permission", change.permission.number, change.permission.by, fields)
        elif isinstance(change, Revoked):
            used: dict[str, object] = {"used": change.permission.used}
            self._record_permission("permission-revoked", change.permission.number, change.by, used)

    def _record_approval(self, number: int, by: str) -> None:
        with suppress(AuditUnavailable):  # as in flush
            self._audit.append("approval", number=number, by=by)

    def _record_permission(self, kind: str, number: int, by: str, fields: dict[str, object]) -> None:
        with suppress(AuditUnavailable):  # as in flush
            self._audit.append(kind, number=number, by=by, **fields)

    async def _answer(
        self, call: OpenCall, request: EscalationRequest, progress: Callable[[str], None] | None
    ) -> Answer:
        asking: Deferred[Answer] = self._escalations.ask(request)
        if progress is None or asking.called:
            return await asking
        reminder = LoopingCall(lambda: progress(f"waiting for a person to decide on {call.server} {call.tool}"))
        reminder.clock = self._clock
        reminder.start(REMINDER_SECONDS).addErrback(
            lambda failure: self.log.failure("the caller could not be informed that its call waits", failure)
        )
        try:
            return await asking
        finally:
            if reminder.running:
                reminder.stop()


def _category(server: str, name: str, words: str, version: str) -> Scope:
    return Scope(server, "", "", frozenset(), version, (("category", name),), (), (), words)


def _outcome(end: _Over) -> dict[str, object]:
    fields: dict[str, object] = {
        "callId": end.call.id,
        "status": end.status,
        "durationMs": round(end.duration * 1000),
    }
    if end.result:
        fields["size"], fields["digest"] = len(end.result), hashlib.sha256(end.result).hexdigest()
    if end.error:
        fields["error"] = end.error
    return fields


def _automatic(verdict: Verdict, tool: ToolDefinition) -> AutomaticCall | None:
    """:returns: what the auto-approver may know; ``None`` if it must not approve the call."""
    hints = tool.definition.get("annotations")
    destroys = isinstance(hints, Mapping) and hints.get("destructiveHint") is True
    removes = any(resource.role in ("delete-path", "delete-history") for resource in verdict.resources)
    irreversible = destroys or removes or any(word in tool.name.lower() for word in _IRREVERSIBLE)
    if verdict.approvals > 1 or verdict.automatic < (Automatic.ALWAYS if irreversible else Automatic.REVERSIBLE):
        return None
    return AutomaticCall(verdict.reason, verdict.resources)
