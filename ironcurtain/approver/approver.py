"""
Approve escalations that the user's own words plainly ask for.

It can only approve: whatever it does not approve waits for a person as before. Its answer counts like anybody's, for
the digest that it was asked about, and the first answer wins.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.approver.consultation import consult, read_answer
from ironcurtain.approver.grounding import KnownDirectories, own_words, quote_problem, unnamed
from ironcurtain.approver.trusted_input import TrustedInput
from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import IronCurtainError
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.model import AutomaticCall, Change, Closed, Escalation, Raised
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.llm.model import ModelError, TokenUsage
from ironcurtain.llm.registry import Chosen

NAME = "auto-approver"
"""The principal that its approvals are attributed to."""

PATIENCE = 60.0
"""Time limit in seconds for the model's answer. A person is asked meanwhile."""


class Evidence(msgspec.Struct, frozen=True):
    """
    What one consideration came to.

    :param problem: why a person has to decide; empty if it approves.
    """

    problem: str
    quote: str = ""
    model: str = ""
    digest: str = ""


class AutoApprover:
    """
    The auto-approver of one session.

    :param choose: returns the model. It is called for the first escalation.
    :param limit: maximum number of times that the model is asked.
    :param spend: counts tokens in the session's budget.
    """

    log = Logger()

    def __init__(
        self,
        *,
        escalations: EscalationQueue,
        trusted_input: TrustedInput,
        audit: AuditLog,
        known: KnownDirectories,
        choose: Callable[[], Coroutine[Any, Any, Chosen]],
        clock: IReactorTime,
        limit: int,
        spend: Callable[[TokenUsage], None],
    ) -> None:
        self._escalations, self._trusted_input, self._audit, self._known = escalations, trusted_input, audit, known
        self._choose, self._clock, self._left, self._spend = choose, clock, limit, spend
        self._chosen: Chosen | None = None
        self._asked: dict[int, Deferred[None]] = {}
        escalations.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if isinstance(change, Raised) and (call := change.escalation.request.automatic) is not None:
            # In a turn of its own, so that everybody hears of the escalation before it is decided.
            self._clock.callLater(0, self._begin, change.escalation, call)
        elif isinstance(change, Closed) and (asked := self._asked.pop(change.escalation.number, None)) is not None:
            asked.cancel()

    def _begin(self, escalation: Escalation, call: AutomaticCall) -> None:
        if not any(waiting.number == escalation.number for waiting in self._escalations.pending()):
            return
        work = Deferred.fromCoroutine(self._consider(escalation, call))
        if not work.called:
            self._asked[escalation.number] = work
        work.addErrback(self._broken, escalation.number)

    async def _consider(self, escalation: Escalation, call: AutomaticCall) -> None:
        try:
            evidence = await self._judge(escalation, call)
        except CancelledError:
            evidence = Evidence("somebody decided first")
        self._asked.pop(escalation.number, None)
        self._audit.append(
            NAME,
            callId=escalation.request.call_id,
            number=escalation.number,
            outcome="asked" if evidence.problem else "approved",
            why=evidence.problem,
            quote=evidence.quote,
            model=evidence.model,
            promptDigest=evidence.digest,
        )
        if not evidence.problem:
            digest, calls = escalation.request.digest, escalation.calls
            self._escalations.decide(escalation.number, Outcome.APPROVED, NAME, digest, calls=calls)

    async def _judge(self, escalation: Escalation, call: AutomaticCall) -> Evidence:
        words = self._trusted_input.publish()
        problems = [unnamed(call.resources, own_words(text), self._known) for text in words]
        if all(problems):
            return Evidence(problems[-1] if problems else "there are no words of the user")
        if self._left <= 0:
            return Evidence("the limit of this session is reached")
        self._left -= 1
        try:
            chosen = self._chosen = self._chosen or await self._choose()
        except IronCurtainError as e:
            return Evidence(f"there is no model: {e}")
        consultation = consult(escalation.request, call, words, chosen.model)
        asking = Deferred.fromCoroutine(chosen.provider.converse(consultation.request, lambda event: None))
        try:
            reply = await asking.addTimeout(PATIENCE, self._clock)
        except ModelError as e:
            self._spend(e.usage or TokenUsage())
            return Evidence(f"the model gave no answer: {e.kind}", model=chosen.model, digest=consultation.digest)
        except TimeoutError:
            return Evidence("the model took too long", model=chosen.model, digest=consultation.digest)
        self._spend(reply.usage)
        answer = read_answer(reply)
        if answer is None:
            return Evidence("the model's answer is not what was asked for", "", reply.model, consultation.digest)
        problem = "the model does not approve"
        if answer.decision == "approve":
            others = self._trusted_input.others()
            problem = quote_problem(answer.quote, words, call.resources, self._known, others)
        return Evidence(problem, answer.quote, reply.model, consultation.digest)

    def _broken(self, failure: Failure, number: int) -> None:
        self._asked.pop(number, None)
        if failure.check(IronCurtainError, OSError) is None:
            self.log.failure("the auto-approver failed", failure)
        else:
            self.log.warn("escalation {number} waits for a person: {error}", number=number, error=failure.value)
