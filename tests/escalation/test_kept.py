"""Approvals that are kept: what they answer, and when they end."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, StaleDecision, UsageError
from ironcurtain.escalation import Answer, Closed, Outcome, Permission, Raised, Revoked
from ironcurtain.escalation.grant import Binding
from ironcurtain.escalation.model import Change
from tests.escalation.doubles import make_queue, make_request, make_scope


class PermissionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.queue = make_queue(self.clock)
        self.seen: list[Change] = []
        self.request = make_request(scope=make_scope())
        self.asked = self.queue.ask(self.request)
        self.queue.subscribe(self.seen.append)

    def keep(self) -> Permission:
        """Approve what waits, and keep it."""
        self.queue.decide(1, Outcome.APPROVED, "ada", self.request.digest, keep=True)
        (permission,) = self.queue.permissions()
        return permission

    def test_it_answers_the_next_one_at_once_with_a_grant_for_that_call_only(self) -> None:
        self.assertEqual(self.keep(), Permission(1, make_scope(), "ada", 1.5e9))
        self.assertEqual(self.successResultOf(self.asked).permission, 0)
        other = make_request({"remote": "mirror"}, "c2", scope=make_scope("/srv/src/deep"))
        answer = self.successResultOf(self.queue.ask(other))
        self.assertEqual(answer, Answer(Outcome.APPROVED, 0, "ada", answer.grant, permission=1))
        assert answer.grant is not None
        self.assertEqual(answer.grant.binding, Binding("s1", other.digest, "v1"))
        self.assertEqual([permission.used for permission in self.queue.permissions()], [1])
        self.assertEqual((self.queue.pending(), self.clock.getDelayedCalls()), ([], []))

    def test_what_it_does_not_cover_is_asked(self) -> None:
        self.keep()
        for number, request in enumerate((make_request(), make_request(scope=make_scope("/srv/other"))), 2):
            self.assertNoResult(self.queue.ask(request))
            self.assertEqual(self.queue.pending()[-1].number, number)

    def test_without_keep_nothing_is_kept(self) -> None:
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(self.queue.permissions(), [])
        self.assertNoResult(self.queue.ask(self.request))

    def test_what_waits_already_goes_on_waiting(self) -> None:
        second = self.queue.ask(make_request({"remote": "mirror"}, scope=make_scope()))
        self.keep()
        self.assertNoResult(second)

    def test_what_cannot_be_kept_is_refused_and_waits(self) -> None:
        self.queue.ask(make_request())
        with self.assertRaisesRegex(UsageError, "escalation 2 cannot be kept"):
            self.queue.decide(2, Outcome.APPROVED, "ada", keep=True)
        with self.assertRaisesRegex(UsageError, "only an approval"):
            self.queue.decide(1, Outcome.DENIED, "ada", keep=True)
        with self.assertRaises(StaleDecision):
            self.queue.decide(1, Outcome.APPROVED, "ada", "0" * 64, keep=True)
        self.assertEqual([escalation.number for escalation in self.queue.pending()], [1, 2])
        self.assertEqual((self.queue.permissions(), self.seen), ([], [Raised(self.queue.pending()[1])]))

    def test_observers_hear_of_it_before_the_answer_is_there(self) -> None:
        answered: list[bool] = []
        self.queue.subscribe(lambda change: answered.append(self.asked.called))
        permission = self.keep()
        self.assertEqual(answered, [False])
        closed = self.seen[0]
        assert isinstance(closed, Closed)
        self.assertEqual((closed.permission, closed.escalation.kept), (permission, True))

    def test_revoked_means_asked_again(self) -> None:
        permission = self.keep()
        self.assertEqual(self.queue.revoke(1, "bob"), permission)
        self.assertEqual(self.seen[1:], [Revoked(permission, "bob")])
        self.assertNoResult(self.queue.ask(self.request))
        with self.assertRaisesRegex(NotFound, "no permission 1"):
            self.queue.revoke(1, "bob")

    def test_it_outlives_a_message_and_ends_with_the_session(self) -> None:
        self.keep()
        self.queue.withdraw_all()
        self.assertEqual(self.successResultOf(self.queue.ask(self.request)).permission, 1)
        waiting = self.queue.ask(make_request())
        self.queue.end()
        self.assertEqual(self.successResultOf(waiting).outcome, Outcome.WITHDRAWN)
        self.assertEqual(self.queue.permissions(), [])
        self.assertNoResult(self.queue.ask(self.request))
