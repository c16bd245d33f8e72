"""
The queue of one session's escalations. Each is pending once, and gets exactly one outcome.

The answers of all front ends and processes go through :meth:`EscalationQueue.decide`. The first answer wins, and later
ones fail with an error that says who answered first. A call that needs two approvals waits until a second principal
approves. The queue is bounded, however many calls an agent makes.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import NotFound, StaleDecision, UsageError
from ironcurtain.escalation.forms import check_answer
from ironcurtain.escalation.grant import GRANT_SECONDS, Binding, Grant
from ironcurtain.escalation.model import (
    Answer,
    ApprovalAdded,
    CallsCounted,
    Change,
    Closed,
    Escalation,
    EscalationRequest,
    Outcome,
    Raised,
    Revoked,
)
from ironcurtain.escalation.permission import Permission
from ironcurtain.escalation.question import EscalationHistory, PendingEscalation

LIMIT = 32
"""Maximum number of pending escalations in a session: more than a person can read before they expire."""

PENDING_BYTES = 16 * 1024 * 1024
"""Maximum size in bytes of all pending arguments: two of the longest calls. One escalation is always accepted."""


def closing_numbers(now: float) -> Callable[[], int]:
    """
    Number escalations in the order in which they get their outcome.

    :param now: seconds since the epoch. The numbers start from it, so that they are greater than those of an earlier
        process at the same socket.
    """
    return itertools.count(int(now * 1000) + 1).__next__


class EscalationQueue:
    """
    The escalations of one session. Equal calls share one escalation and its decision.

    :param next_number: returns numbers that are never reused. It is called once at a time.
    :param new_id: returns unguessable identifiers.
    :param clock: used for expiry.
    :param now: returns seconds since the epoch.
    :param next_closing: returns increasing numbers, shared by all queues of the process (:func:`closing_numbers`).
    :param timeout: seconds until an escalation expires.
    :param attended: returns whether anybody could answer. It is called for each request.
    :param limit: maximum number of pending escalations, and of equal calls that wait for one of them.
    """

    log = Logger()

    def __init__(
        self,
        *,
        next_number: Callable[[], Deferred[int]],
        new_id: Callable[[], str],
        clock: IReactorTime,
        now: Callable[[], float],
        next_closing: Callable[[], int],
        timeout: float,
        attended: Callable[[], bool],
        limit: int = LIMIT,
    ) -> None:
        self._next_number, self._new_id, self._clock, self._now = next_number, new_id, clock, now
        self._timeout, self._attended, self._limit = timeout, attended, limit
        self._next_closing = next_closing
        self._numbering = DeferredLock()
        self._questions: list[PendingEscalation] = []
        self._closed = EscalationHistory()
        self._permissions: dict[int, Permission] = {}
        self._observers: list[Callable[[Change], None]] = []
        self.before_expiry: Callable[[Escalation], None] = lambda escalation: None
        """Called when an escalation is about to expire; it can still decide the escalation."""

    def ask(self, request: EscalationRequest) -> Deferred[Answer]:
        """
        Escalate a call. It becomes pending as soon as it has its number, in the order of the requests. A call that
        equals a pending one joins it. A call that a kept approval covers, or that exceeds a limit, is answered at once.

        :returns: fires with the answer. Cancelling it withdraws the call, and it fires with that outcome.
        """
        if (permission := self._covering(request)) is not None:
            grant = self._grant(request)
            return succeed(Answer(Outcome.APPROVED, by=permission.by, grant=grant, permission=permission.number))
        if not self._attended():
            return succeed(Answer(Outcome.UNATTENDED))
        answer: Deferred[Answer] = Deferred(self._cancelled)
        same = next((pending for pending in self._questions if pending.is_equal(request)), None)
        if same is None:
            new = PendingEscalation(request, [answer])
            if self._is_full(new):
                return succeed(Answer(Outcome.TOO_MANY))
            self._add(new)
        elif len(same.answers) >= self._limit:
            return succeed(Answer(Outcome.TOO_MANY))
        else:
            same.answers.append(answer)
            self._update_calls(same)
        return answer

    def decide(
        self,
        number: int,
        outcome: Outcome,
        by: str,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
        category: bool = False,
    ) -> Escalation:
        """
        Decide an escalation. An approval of one that needs several leaves it pending until the last.

        :param outcome: approved or denied.
        :param by: who decides.
        :param digest: the digest of the arguments that were shown. If given, it must match.
        :param keep: whether the approval covers all calls in the request's scope, until it is revoked or the session
            ends. Escalations that are already pending must still be decided.
        :param calls: the number of equal calls that were shown, if known. An approval permits no more of them; calls
            that arrived later are escalated again.
        :param category: whether a kept approval covers the request's category in place of its scope.
        :returns: the escalation, with its outcome if it has one now.
        :raises UsageError: the approval cannot be kept. The escalation stays pending.
        :raises NotFound: this session has no escalation with that number.
        :raises StaleDecision: the escalation already has an outcome, other arguments were shown, or the same principal
            approved it before.
        """
        if outcome not in (Outcome.APPROVED, Outcome.DENIED):
            raise ValueError(f"{outcome!r} is not a decision")
        question, escalation = self._waiting(number, digest)
        if outcome is Outcome.APPROVED and question.request.form is not None:
            raise UsageError(f"{number} is a form: fill it in with 'ironcurtain answer {number}', or /answer {number}")
        permission = self._permission(escalation, outcome, by, category) if keep else None
        later: list[Deferred[Answer]] = []
        if outcome is Outcome.APPROVED:
            if by in escalation.approved_by:
                text = f"{by} approved escalation {number} already, which counts once: another person must approve it"
                raise StaleDecision(text)
            permitted = len(question.answers) if permission is not None else question.approve(calls)
            escalation = question.escalation = replace(escalation, approved_by=(*escalation.approved_by, by))
            if len(escalation.approved_by) < question.request.approvals:
                self._notify(ApprovalAdded(escalation))
                return escalation
            question.answers, later = question.answers[:permitted], question.answers[permitted:]
        closed = self._close(question, escalation, outcome, by, permission)
        if later := [answer for answer in later if not answer.called]:
            self._add(PendingEscalation(question.request, later))
        return closed

    def answer(self, number: int, content: Mapping[str, Any] | None, by: str, digest: str | None = None) -> Escalation:
        """
        Answer a form. To decline it, deny the escalation.

        :param content: its values, by name; ``None``: it is cancelled.
        :param by: who answers.
        :param digest: the digest of the form that was shown. If given, it must match.
        :returns: the escalation, with its outcome. Only who asked gets the values.
        :raises UsageError: it is a call, or the values do not fit the form. The escalation stays pending.
        :raises NotFound: this session has no escalation with that number.
        :raises StaleDecision: it already has an outcome, or another form was shown.
        """
        question, escalation = self._waiting(number, digest)
        if (form := question.request.form) is None:
            raise UsageError(f"{number} is a call and no form: approve or deny it")
        values = None if content is None else check_answer(form, content)
        return self._close(
            question, escalation, Outcome.CANCELLED if values is None else Outcome.ANSWERED, by, content=values
        )

    def deny_all(self, by: str) -> list[int]:
        """
        Deny all pending escalations, including those that do not have a number yet.

        :returns: the numbers of those that have one.
        """
        return self._close_all(Outcome.DENIED, by)

    def permissions(self) -> list[Permission]:
        """:returns: the kept approvals that are not revoked, oldest first."""
        return list(self._permissions.values())

    def revoke(self, number: int, by: str) -> Permission:
        """
        Revoke a permission, so that such calls are escalated again. Calls that it already permitted continue.

        :param number: the number of the escalation whose approval was kept.
        :returns: the revoked permission.
        :raises NotFound: the permission does not exist.
        """
        if (permission := self._permissions.pop(number, None)) is None:
            raise NotFound(f"there is no permission {number} here")
        self._notify(Revoked(permission, by))
        return permission

    def end(self) -> None:
        """End the queue with its session: withdraw all pending escalations and drop all permissions."""
        self._permissions.clear()
        self.withdraw_all()

    def withdraw_all(self) -> None:
        """Withdraw all pending escalations, including those that do not have a number yet."""
        self._close_all(Outcome.WITHDRAWN)

    def pending(self) -> list[Escalation]:
        """:returns: the pending escalations, oldest first."""
        return [question.escalation for question in self._questions if question.escalation is not None]

    def history(self) -> list[Escalation]:
        """:returns: the remembered escalations that have an outcome, oldest first."""
        return list(self._closed)

    def subscribe(self, observer: Callable[[Change], None]) -> Callable[[], None]:
        """
        :param observer: called with every change. Exceptions that it raises are logged.
        :returns: a function that ends the subscription.
        """
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def _is_full(self, new: PendingEscalation) -> bool:
        pending = sum(question.size for question in self._questions)
        return len(self._questions) >= self._limit or (bool(self._questions) and pending + new.size > PENDING_BYTES)

    def _add(self, question: PendingEscalation) -> None:
        self._questions.append(question)
        numbered = self._numbering.run(self._next_number)
        numbered.addCallbacks(self._raise, self._fail, callbackArgs=(question,), errbackArgs=(question,))

    def _raise(self, number: int, question: PendingEscalation) -> None:
        if question not in self._questions:  # withdrawn in the meantime; its number stays unused
            return
        raised, calls = self._now(), len(question.answers)
        escalation = Escalation(self._new_id(), number, question.request, raised, raised + self._timeout, calls=calls)
        question.escalation = escalation
        question.timer = self._clock.callLater(self._timeout, self._expire, question, escalation)
        self._notify(Raised(escalation))

    def _fail(self, failure: Failure, question: PendingEscalation) -> None:
        if question in self._questions:
            self._questions.remove(question)
            for answer in question.answers:
                answer.errback(failure)

    def _update_calls(self, question: PendingEscalation) -> None:
        if question.escalation is not None:
            question.escalation = replace(question.escalation, calls=len(question.answers))
            self._notify(CallsCounted(question.escalation))

    def _cancelled(self, answer: Deferred[Answer]) -> None:
        for question in list(self._questions):
            if question.answers == [answer]:
                self._end(question, Outcome.WITHDRAWN)
            elif answer in question.answers:
                question.answers.remove(answer)
                answer.callback(Answer(Outcome.WITHDRAWN, question.number))
                self._update_calls(question)

    def _waiting(self, number: int, digest: str | None) -> tuple[PendingEscalation, Escalation]:
        found = next(((q, q.escalation) for q in self._questions if q.escalation and q.number == number), None)
        if found is None:
            raise self._not_pending(number)
        if digest is not None and digest != found[0].request.digest:
            raise StaleDecision(f"escalation {number} has other arguments than those that you saw: look at it again")
        return found

    def _not_pending(self, number: int) -> NotFound | StaleDecision:
        for escalation in self._closed:
            if escalation.number == number:
                by = f" by {escalation.deciders}" if escalation.deciders else ""
                return StaleDecision(f"too late: escalation {number} was {escalation.outcome}{by}")
        return NotFound(f"there is no escalation {number} here")

    def _expire(self, question: PendingEscalation, escalation: Escalation) -> None:
        try:
            self.before_expiry(escalation)
        except Exception:
            self.log.failure("the check before the expiry of escalation {number} failed", number=escalation.number)
        self._end(question, Outcome.EXPIRED)

    def _permission(self, escalation: Escalation, outcome: Outcome, by: str, category: bool) -> Permission:
        if outcome is not Outcome.APPROVED:
            raise UsageError("only an approval can be kept, not a denial")
        scope = escalation.request.category if category else escalation.request.scope
        if scope is None or escalation.request.approvals > 1:
            number = escalation.number
            raise UsageError(f"the approval of escalation {number} cannot be kept: it is for this call only")
        return Permission(escalation.number, scope, by, self._now())

    def _covering(self, request: EscalationRequest) -> Permission | None:
        scopes = [scope for scope in (request.scope, request.category) if scope is not None]
        if not scopes or request.approvals > 1:
            return None
        for number, permission in self._permissions.items():
            if any(permission.scope.covers(scope) for scope in scopes):
                self._permissions[number] = replace(permission, used=permission.used + 1)
                return permission
        return None

    def _close_all(self, outcome: Outcome, by: str = "") -> list[int]:
        questions = list(self._questions)
        return [question.number for question in questions if self._end(question, outcome, by) and question.number]

    def _end(self, question: PendingEscalation, outcome: Outcome, by: str = "") -> bool:
        """:returns: ``False`` if it is no longer pending, because an observer of another answer decided it."""
        if question not in self._questions:
            return False
        if question.escalation is not None:
            self._close(question, question.escalation, outcome, by)
        else:
            self._questions.remove(question)
            self._answer(question, Answer(outcome, by=by))
        return True

    def _close(
        self,
        question: PendingEscalation,
        escalation: Escalation,
        outcome: Outcome,
        by: str = "",
        permission: Permission | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> Escalation:
        self._questions.remove(question)
        if question.timer is not None and question.timer.active():
            question.timer.cancel()
        closed = replace(
            escalation,
            outcome=outcome,
            by=by,
            closed_at=self._now(),
            closing=self._next_closing(),
            kept=permission is not None,
            calls=len(question.answers),
        )
        self._closed.add(closed, question.size)
        if permission is not None:
            self._permissions[closed.number] = permission
        self._notify(Closed(closed, permission))
        self._answer(question, Answer(outcome, closed.number, by, content=content))
        return closed

    def _answer(self, question: PendingEscalation, answer: Answer) -> None:
        for waiting in list(question.answers):
            is_granted = answer.outcome in (Outcome.APPROVED, Outcome.ANSWERED)
            grant = self._grant(question.request) if is_granted else None
            if not waiting.called:
                waiting.callback(dataclasses.replace(answer, grant=grant))

    def _grant(self, request: EscalationRequest) -> Grant:
        binding = Binding(request.session_id, request.digest, request.policy_version)
        return Grant(binding, self._clock.seconds() + GRANT_SECONDS)

    def _notify(self, change: Change) -> None:
        for observer in list(self._observers):
            try:
                observer(change)
            except Exception:
                self.log.failure("an observer of escalations failed")
