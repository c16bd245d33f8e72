"""Ask a person about one step, through the session's escalations, so that any console can answer."""

from __future__ import annotations

import msgspec
from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.errors import StaleDecision, UsageError
from ironcurtain.escalation import Answer, Outcome
from ironcurtain.escalation.model import Change, Closed, Escalation, Raised
from ironcurtain.mcp_proxy.admission import OpenCall
from ironcurtain.mcp_proxy.refusals import CallRefused
from ironcurtain.shell.categories import WORDS, category_of
from ironcurtain.shell.messages import (
    Action,
    Approval,
    ApprovalRequested,
    Edit,
    Interrupt,
    Kill,
    ProposedStep,
    Steer,
    StepKind,
)
from ironcurtain.shell.model import PlanParts
from ironcurtain.shell.tools import JudgedStep


class StepQuestion:
    """
    One question.

    :param approved: whether the user has approved exactly this step with its plan.
    :ivar instead: what the user said in place of a decision; then the question is withdrawn.
    :ivar reason: why it was denied, if that was said.
    """

    def __init__(self, plan_id: str, call: OpenCall, step: ProposedStep, parts: PlanParts, approved: bool) -> None:
        self._plan_id, self._call, self._step, self._parts, self._approved = plan_id, call, step, parts, approved
        self._pending: Escalation | None = None
        self._asking: Deferred[Answer] | None = None
        self._by = parts.by
        self.instead: Action | None = None
        self.reason = ""

    async def ask(self, judged: JudgedStep) -> str:
        """
        :returns: who approved it.
        :raises CallRefused: the step must not run.
        """
        parts = self._parts
        stop = parts.escalations.subscribe(self._changed)
        hand = parts.hands.of(judged.step)
        found = category_of(judged)
        category = None if found is None else (found.value, WORDS[found])
        asking = hand.admission.ask(self._call, judged.verdict, None, hand.tool(judged), category=category)
        self._asking = Deferred.fromCoroutine(asking)
        try:
            await self._asking
        except CancelledError:  # of the record of a decision; a question that is cancelled is withdrawn
            if self.instead is None:
                raise
            raise CallRefused("withdrawn", "withdrawn", "it was taken back", judged.verdict.rule) from None
        finally:
            stop()
            self._pending = None
        return self._by

    def receive(self, action: Action) -> None:
        """
        A front end decides, or says something else.

        :raises UsageError: it does not fit, or came before the question.
        :raises StaleDecision: something else was shown.
        """
        others = isinstance(action, Approval) and action.step != self._step.number
        if others and not (isinstance(action, Approval) and (action.step, action.decision) == (None, "deny")):
            raise StaleDecision(f"it is step {self._step.number} that waits for a decision")
        match action:
            case Approval(decision="allow" | "allow_session" | "allow_category" | "deny" as decision):
                if (pending := self._pending) is None:
                    raise UsageError("the question is not there yet")
                self.reason = action.reason if decision == "deny" else ""
                outcome = Outcome.DENIED if decision == "deny" else Outcome.APPROVED
                self._decide(pending, outcome, action.digest or pending.request.digest, decision)
            case Approval(decision="skip") | Edit() | Steer() | Interrupt() | Kill():
                self.instead = action
                if self._asking is not None:
                    self._asking.cancel()
            case _:
                raise UsageError("a step waits for a decision: allow, allow_session, allow_category, skip or deny")

    def _changed(self, change: Change) -> None:
        if isinstance(change, Closed) and change.escalation.request.call_id == self._call.id:
            self._by = change.escalation.by
        elif isinstance(change, Raised) and change.escalation.request.call_id == self._call.id:
            self._pending = change.escalation
            if self._approved:  # in a turn of its own, so that everybody hears of the question before the answer
                self._parts.clock.callLater(0, self._approve, change.escalation)
            else:
                self._tell(change.escalation)

    def _approve(self, escalation: Escalation) -> None:
        if self._pending is escalation:
            self._decide(escalation, Outcome.APPROVED, escalation.request.digest)

    def _decide(self, escalation: Escalation, outcome: Outcome, digest: str, decision: str = "allow") -> None:
        keep, category = decision in ("allow_session", "allow_category"), decision == "allow_category"
        self._parts.escalations.decide(escalation.number, outcome, self._parts.by, digest, keep, category=category)

    def _tell(self, escalation: Escalation) -> None:
        request = escalation.request
        scope = request.scope.words if request.scope is not None else ""
        if scope and self._step.kind is StepKind.COMMAND:  # all of its arguments are fixed: see RUN_TOOL
            scope = f"exactly this command in {self._parts.directory()}"
        self._parts.tell(
            ApprovalRequested(
                plan_id=self._plan_id,
                step=msgspec.structs.replace(self._step, undo=request.reversal.value),
                number=escalation.number,
                digest=request.digest,
                scope=scope,
                category=request.category.words if request.category is not None else "",
            )
        )
