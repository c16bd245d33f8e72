"""
One session's escalations: each is pending once, and gets exactly one outcome.

Whoever answers, from whichever front end or process, ends in :meth:`EscalationQueue.decide`; the first answer wins, and
all later ones are told who was first. However many calls an agent makes, what waits is bounded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import NotFound, StaleDecision, UsageError
from ironcurtain.escalation.grant import GRANT_SECONDS, Binding, Grant
from ironcurtain.escalation.model import (
    Answer,
    Change,
    Closed,
    Counted,
    Escalation,
    EscalationRequest,
    Outcome,
    Raised,
    Revoked,
)
from ironcurtain.escalation.permission import Permission
from ironcurtain.escalation.question import History, Question

LIMIT = 32
"""How many questions of one session wait at a time: more than a person reads in the time that they have."""

WAITING_BYTES = 16 * 1024 * 1024
"""Most bytes of arguments that wait (two of the longest calls); one question can wait in any case."""


def closing_numbers(now: float) -> Callable[[], int]:
    """
    Number what gets its outcome, in that order.

    :param now: seconds since the epoch, with which the numbers begin: so they are greater than those of a process that
        had our socket before.
    """
    return itertools.count(int(now * 1000) + 1).__next__


class EscalationQueue:
    """
    The escalations of one session. Equal calls wait as one question, for one decision.

    :param next_number: gives numbers that are never reused; asked for one at a time.
    :param new_id: gives unguessable ids.
    :param clock: for expiry.
    :param now: seconds since the epoch.
    :param next_closing: gives numbers that grow, to all queues of the process (:func:`closing_numbers`).
    :param timeout: how long a person has, in seconds.
    :param attended: whether anybody could answer at all; asked for each escalation as it is raised.
    :param limit: most questions that wait at a time, and most equal calls that wait for one of them.
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
        self._questions: list[Question] = []
        self._closed = History()
        self._permissions: dict[int, Permission] = {}
        self._observers: list[Callable[[Change], None]] = []
        self.last_look: Callable[[Escalation], None] = lambda escalation: None
        """Called when an escalation is about to expire: the last moment to find an answer and decide."""

    def ask(self, request: EscalationRequest) -> Deferred[Answer]:
        """
        Put a call before a person, as soon as it has its number. Questions are raised in the order in which they come;
        a call that is equal to one that waits joins it. A call that a kept approval covers is answered at once, and so
        is one too many.

        :returns: fires once with the answer. Cancelling it withdraws the call, and that is then the answer.
        """
        if (permission := self._covering(request)) is not None:
            grant = self._grant(request)
            return succeed(Answer(Outcome.APPROVED, by=permission.by, grant=grant, permission=permission.number))
        if not self._attended():
            return succeed(Answer(Outcome.UNATTENDED))
        answer: Deferred[Answer] = Deferred(self._give_up)
        same = next((question for question in self._questions if question.is_equal(request)), None)
        if same is None:
            new = Question(request, [answer])
            if self._is_full(new):
                return succeed(Answer(Outcome.TOO_MANY))
            self._put(new)
        elif len(same.answers) >= self._limit:
            return succeed(Answer(Outcome.TOO_MANY))
        else:
            same.answers.append(answer)
            self._count(same)
        return answer

    def decide(
        self,
        number: int,
        outcome: Outcome,
        by: str,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> Escalation:
        """
        Answer an escalation.

        :param outcome: approved or denied.
        :param by: who answers.
        :param digest: of the arguments that were shown; where it is given, it must match.
        :param keep: whether the approval stands for all calls of the request's scope, until it is revoked or the
            session ends. What waits already still has to be decided.
        :param calls: how many equal calls were shown, where that is known. An approval lets no more of them through:
            about those that came since, people are asked anew.
        :returns: the escalation with its outcome.
        :raises UsageError: it is no approval that can be kept; nothing is decided then.
        :raises NotFound: this session has no escalation of that number.
        :raises StaleDecision: it has an outcome already, or other arguments were shown.
        """
        if outcome not in (Outcome.APPROVED, Outcome.DENIED):
            raise ValueError(f"nobody can decide {outcome!r}")
        found = next(((q, q.escalation) for q in self._questions if q.escalation and q.number == number), None)
        if found is None:
            raise self._too_late(number)
        question, escalation = found
        if digest is not None and digest != question.request.digest:
            raise StaleDecision(f"escalation {number} is for other arguments than those that were shown: look again")
        permission = self._kept(escalation, outcome, by) if keep else None
        later: list[Deferred[Answer]] = []
        if outcome is Outcome.APPROVED and permission is None:
            question.answers, later = question.answers[:calls], question.answers[len(question.answers[:calls]) :]
        closed = self._close(question, escalation, outcome, by, permission)
        if later := [answer for answer in later if not answer.called]:
            self._put(Question(question.request, later))
        return closed

    def deny_all(self, by: str) -> list[int]:
        """
        Deny all that waits, or is about to.

        :returns: the numbers of those that had one.
        """
        return self._close_all(Outcome.DENIED, by)

    def permissions(self) -> list[Permission]:
        """:returns: the approvals that were kept and still stand, oldest first."""
        return list(self._permissions.values())

    def revoke(self, number: int, by: str) -> Permission:
        """
        Have people asked again. A call that was permitted already goes on.

        :param number: the escalation's whose approval was kept.
        :returns: what stands no more.
        :raises NotFound: there is no such permission.
        """
        if (permission := self._permissions.pop(number, None)) is None:
            raise NotFound(f"there is no permission {number} here")
        self._tell(Revoked(permission, by))
        return permission

    def end(self) -> None:
        """The session ends: withdraw whatever is pending, and forget what is permitted."""
        self._permissions.clear()
        self.withdraw_all()

    def withdraw_all(self) -> None:
        """Withdraw whatever is pending, or about to be."""
        self._close_all(Outcome.WITHDRAWN)

    def pending(self) -> list[Escalation]:
        """:returns: what waits for a decision, oldest first."""
        return [question.escalation for question in self._questions if question.escalation is not None]

    def history(self) -> list[Escalation]:
        """:returns: what got an outcome, oldest first."""
        return list(self._closed)

    def subscribe(self, observer: Callable[[Change], None]) -> Callable[[], None]:
        """
        :param observer: is told of every change; what it raises is logged.
        :returns: call it to hear no more.
        """
        self._observers.append(observer)
        return lambda: self._observers.remove(observer)

    def _is_full(self, new: Question) -> bool:
        waiting = sum(question.size for question in self._questions)
        return len(self._questions) >= self._limit or (bool(self._questions) and waiting + new.size > WAITING_BYTES)

    def _put(self, question: Question) -> None:
        self._questions.append(question)
        numbered = self._numbering.run(self._next_number)
        numbered.addCallbacks(self._raise, self._fail, callbackArgs=(question,), errbackArgs=(question,))

    def _raise(self, number: int, question: Question) -> None:
        if question not in self._questions:  # it was over before anybody saw it; its number is never used
            return
        raised, calls = self._now(), len(question.answers)
        escalation = Escalation(self._new_id(), number, question.request, raised, raised + self._timeout, calls=calls)
        question.escalation = escalation
        question.timer = self._clock.callLater(self._timeout, self._expire, question, escalation)
        self._tell(Raised(escalation))

    def _fail(self, failure: Failure, question: Question) -> None:
        if question in self._questions:
            self._questions.remove(question)
            for answer in question.answers:
                answer.errback(failure)

    def _count(self, question: Question) -> None:
        if question.escalation is not None:
            question.escalation = replace(question.escalation, calls=len(question.answers))
            self._tell(Counted(question.escalation))

    def _give_up(self, answer: Deferred[Answer]) -> None:
        for question in list(self._questions):
            if question.answers == [answer]:
                self._end(question, Outcome.WITHDRAWN)
            elif answer in question.answers:
                question.answers.remove(answer)
                answer.callback(Answer(Outcome.WITHDRAWN, question.number))
                self._count(question)

    def _too_late(self, number: int) -> NotFound | StaleDecision:
        for escalation in self._closed:
            if escalation.number == number:
                by = f" by {escalation.by}" if escalation.by else ""
                return StaleDecision(f"too late: escalation {number} was {escalation.outcome}{by} before")
        return NotFound(f"there is no escalation {number} here")

    def _expire(self, question: Question, escalation: Escalation) -> None:
        try:
            self.last_look(escalation)
        except Exception:
            self.log.failure("the last look for an answer to escalation {number} failed", number=escalation.number)
        self._end(question, Outcome.EXPIRED)

    def _kept(self, escalation: Escalation, outcome: Outcome, by: str) -> Permission:
        if outcome is not Outcome.APPROVED:
            raise UsageError("only an approval can be kept: a call that is denied is asked about again")
        if (scope := escalation.request.scope) is None:
            number = escalation.number
            raise UsageError(f"the approval of escalation {number} cannot be kept: it is for this call only")
        return Permission(escalation.number, scope, by, self._now())

    def _covering(self, request: EscalationRequest) -> Permission | None:
        if request.scope is None:
            return None
        for number, permission in self._permissions.items():
            if permission.scope.covers(request.scope):
                self._permissions[number] = replace(permission, used=permission.used + 1)
                return permission
        return None

    def _close_all(self, outcome: Outcome, by: str = "") -> list[int]:
        questions = list(self._questions)
        return [question.number for question in questions if self._end(question, outcome, by) and question.number]

    def _end(self, question: Question, outcome: Outcome, by: str = "") -> bool:
        """:returns: whether it still waited: an observer of another answer may have been faster."""
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
        question: Question,
        escalation: Escalation,
        outcome: Outcome,
        by: str = "",
        permission: Permission | None = None,
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
        self._tell(Closed(closed, permission))
        self._answer(question, Answer(outcome, closed.number, by))
        return closed

    def _answer(self, question: Question, answer: Answer) -> None:
        for waiting in list(question.answers):
            grant = self._grant(question.request) if answer.outcome is Outcome.APPROVED else None
            if not waiting.called:
                waiting.callback(replace(answer, grant=grant))

    def _grant(self, request: EscalationRequest) -> Grant:
        binding = Binding(request.session_id, request.digest, request.policy_version)
        return Grant(binding, self._clock.seconds() + GRANT_SECONDS)

    def _tell(self, change: Change) -> None:
        for observer in list(self._observers):
            try:
                observer(change)
            except Exception:
                self.log.failure("an observer of escalations failed")
