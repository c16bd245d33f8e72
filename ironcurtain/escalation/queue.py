"""
One session's escalations: each is pending once, and gets exactly one outcome.

Whoever answers, from whichever front end or process, ends in :meth:`EscalationQueue.decide`; the first answer wins, and
all later ones are told who was first.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import NotFound, StaleDecision, UsageError
from ironcurtain.escalation.grant import GRANT_SECONDS, Binding, Grant
from ironcurtain.escalation.model import (
    Answer,
    Change,
    Closed,
    Escalation,
    EscalationRequest,
    Outcome,
    Raised,
    Revoked,
)
from ironcurtain.escalation.permission import Permission

HISTORY = 1000
"""How many closed escalations a session remembers, for views and for late answers (our choice)."""


def closing_numbers(now: float) -> Callable[[], int]:
    """
    Number what gets its outcome, in that order.

    :param now: seconds since the epoch, with which the numbers begin: so they are greater than those of a process that
        had our socket before.
    """
    return itertools.count(int(now * 1000) + 1).__next__


@dataclass(slots=True)
class _Pending:
    escalation: Escalation
    answer: Deferred[Answer]
    timer: IDelayedCall


class EscalationQueue:
    """
    The escalations of one session.

    :param next_number: gives numbers that are never reused; asked for one at a time.
    :param new_id: gives unguessable ids.
    :param clock: for expiry.
    :param now: seconds since the epoch.
    :param next_closing: gives numbers that grow, to all queues of the process (:func:`closing_numbers`).
    :param timeout: how long a person has, in seconds.
    :param attended: whether anybody could answer at all; asked for each escalation as it is raised.
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
    ) -> None:
        self._next_number, self._new_id, self._clock, self._now = next_number, new_id, clock, now
        self._timeout, self._attended = timeout, attended
        self._next_closing = next_closing
        self._numbering = DeferredLock()
        self._unnumbered: list[Deferred[Answer]] = []
        self._pending: dict[int, _Pending] = {}
        self._closed: deque[Escalation] = deque(maxlen=HISTORY)
        self._permissions: dict[int, Permission] = {}
        self._observers: list[Callable[[Change], None]] = []
        self.last_look: Callable[[Escalation], None] = lambda escalation: None
        """Called when an escalation is about to expire: the last moment to find an answer and decide."""

    def ask(self, request: EscalationRequest) -> Deferred[Answer]:
        """
        Put a call before a person, as soon as it has its number. Questions are raised in the order in which they come.
        A call that a kept approval covers is answered at once.

        :returns: fires once with the answer. Cancelling it withdraws the question, and that is then the answer.
        """
        if (permission := self._covering(request)) is not None:
            grant = self._grant(request)
            return succeed(Answer(Outcome.APPROVED, by=permission.by, grant=grant, permission=permission.number))
        if not self._attended():
            return succeed(Answer(Outcome.UNATTENDED))
        answer: Deferred[Answer] = Deferred(self._give_up)
        self._unnumbered.append(answer)
        numbered = self._numbering.run(self._next_number)
        numbered.addCallbacks(self._raise, self._fail, callbackArgs=(request, answer), errbackArgs=(answer,))
        return answer

    def decide(
        self, number: int, outcome: Outcome, by: str, digest: str | None = None, keep: bool = False
    ) -> Escalation:
        """
        Answer an escalation.

        :param outcome: approved or denied.
        :param by: who answers.
        :param digest: of the arguments that were shown; where it is given, it must match.
        :param keep: whether the approval stands for all calls of the request's scope, until it is revoked or the
            session ends. What waits already still has to be decided.
        :returns: the escalation with its outcome.
        :raises UsageError: it is no approval that can be kept; nothing is decided then.
        :raises NotFound: this session has no escalation of that number.
        :raises StaleDecision: it has an outcome already, or other arguments were shown.
        """
        if outcome not in (Outcome.APPROVED, Outcome.DENIED):
            raise ValueError(f"nobody can decide {outcome!r}")
        if (pending := self._pending.get(number)) is None:
            raise self._too_late(number)
        if digest is not None and digest != pending.escalation.request.digest:
            raise StaleDecision(f"escalation {number} is for other arguments than those that were shown: look again")
        kept = self._kept(pending.escalation, outcome, by) if keep else None
        return self._close(number, outcome, by, kept)

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
        for answer in list(self._unnumbered):
            self._give_up(answer)
        for number in list(self._pending):
            self._withdraw(number)

    def pending(self) -> list[Escalation]:
        """:returns: what waits for a decision, oldest first."""
        return [pending.escalation for pending in self._pending.values()]

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

    def _raise(self, number: int, request: EscalationRequest, answer: Deferred[Answer]) -> None:
        if answer not in self._unnumbered:  # withdrawn before anybody saw it; its number is never used
            return
        self._unnumbered.remove(answer)
        raised = self._now()
        escalation = Escalation(self._new_id(), number, request, raised, raised + self._timeout)
        timer = self._clock.callLater(self._timeout, self._expire, number)
        self._pending[number] = _Pending(escalation, answer, timer)
        self._tell(Raised(escalation))

    def _fail(self, failure: Failure, answer: Deferred[Answer]) -> None:
        if answer in self._unnumbered:
            self._unnumbered.remove(answer)
            answer.errback(failure)

    def _give_up(self, answer: Deferred[Answer]) -> None:
        if answer in self._unnumbered:
            self._unnumbered.remove(answer)
            answer.callback(Answer(Outcome.WITHDRAWN))
        for number, pending in list(self._pending.items()):
            if pending.answer is answer:
                self._withdraw(number)

    def _too_late(self, number: int) -> NotFound | StaleDecision:
        for escalation in self._closed:
            if escalation.number == number:
                by = f" by {escalation.by}" if escalation.by else ""
                return StaleDecision(f"too late: escalation {number} was {escalation.outcome}{by} before")
        return NotFound(f"there is no escalation {number} here")

    def _withdraw(self, number: int) -> None:
        if number in self._pending:  # not if an observer of the answer withdraws what was just answered
            self._close(number, Outcome.WITHDRAWN)

    def _expire(self, number: int) -> None:
        try:
            self.last_look(self._pending[number].escalation)
        except Exception:
            self.log.failure("the last look for an answer to escalation {number} failed", number=number)
        if number in self._pending:
            self._close(number, Outcome.EXPIRED)

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

    def _close(self, number: int, outcome: Outcome, by: str = "", permission: Permission | None = None) -> Escalation:
        pending = self._pending.pop(number)
        if pending.timer.active():
            pending.timer.cancel()
        escalation = replace(
            pending.escalation,
            outcome=outcome,
            by=by,
            closed_at=self._now(),
            closing=self._next_closing(),
            kept=permission is not None,
        )
        self._closed.append(escalation)
        if permission is not None:
            self._permissions[number] = permission
        self._tell(Closed(escalation, permission))
        grant = self._grant(escalation.request) if outcome is Outcome.APPROVED else None
        if not pending.answer.called:
            pending.answer.callback(Answer(outcome, number, by, grant))
        return escalation

    def _grant(self, request: EscalationRequest) -> Grant:
        binding = Binding(request.session_id, request.digest, request.policy_version)
        return Grant(binding, self._clock.seconds() + GRANT_SECONDS)

    def _tell(self, change: Change) -> None:
        for observer in list(self._observers):
            try:
                observer(change)
            except Exception:
                self.log.failure("an observer of escalations failed")
