"""However many calls an agent makes, what waits for a person stays small, and can be refused at once."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Answer, CallsCounted, Outcome, Raised
from ironcurtain.escalation.grant import Binding
from ironcurtain.escalation.model import Change
from ironcurtain.escalation.question import HISTORY_BYTES
from ironcurtain.escalation.queue import LIMIT, PENDING_BYTES
from tests.escalation.doubles import make_queue, make_request, make_scope


class FloodTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.queue = make_queue(self.clock)

    def assertIdle(self) -> None:
        self.assertEqual((self.queue.pending(), self.clock.getDelayedCalls()), ([], []))

    def ask(self, n: object, **more: Any) -> Deferred[Answer]:
        """:returns: the answer to a call that is equal to those with the same number."""
        return self.queue.ask(make_request({"n": n}, **more))

    def test_one_too_many_fails_at_once_and_uses_no_number(self) -> None:
        asked = [self.ask(n) for n in range(LIMIT)]
        self.assertEqual(self.successResultOf(self.ask("more")), Answer(Outcome.TOO_MANY))
        self.assertEqual(len(self.queue.pending()), LIMIT)
        self.queue.decide(1, Outcome.DENIED, "ada")
        self.ask("later")
        self.assertEqual(self.queue.pending()[-1].number, LIMIT + 1)
        self.assertNoResult(asked[1])

    def test_those_without_a_number_count(self) -> None:
        self.queue = make_queue(self.clock, limit=2, next_number=Deferred)
        self.ask(1), self.ask(2)
        self.assertEqual(self.successResultOf(self.ask(3)).outcome, Outcome.TOO_MANY)

    def test_what_waits_has_so_many_bytes_together(self) -> None:
        half = "x" * (PENDING_BYTES // 2)
        self.ask(half)
        self.assertEqual(self.successResultOf(self.ask(half + "y")).outcome, Outcome.TOO_MANY)
        self.assertNoResult(self.ask("small"))
        self.queue.withdraw_all()
        self.assertNoResult(self.ask(half * 3))  # one can wait in any case

    def test_what_is_remembered_has_so_many_bytes_together(self) -> None:
        for number in range(1, 10):
            self.ask(f"{number}" * (HISTORY_BYTES // 4))
            self.queue.decide(number, Outcome.DENIED, "ada")
        self.assertEqual([escalation.number for escalation in self.queue.history()], [7, 8, 9])

    def test_equal_calls_wait_as_one_question_with_one_decision(self) -> None:
        changes: list[Change] = []
        self.queue.subscribe(changes.append)
        asked = [self.ask(1, call_id=f"c{n}") for n in range(5)]
        (pending,) = self.queue.pending()
        self.assertEqual((pending.number, pending.calls, pending.request.call_id), (1, 5, "c0"))
        self.assertEqual([type(change) for change in changes], [Raised, *[CallsCounted] * 4])
        closed = self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual(closed.calls, 5)
        for grant in [self.successResultOf(one).grant for one in asked]:
            assert grant is not None  # each has one of its own, which is spent once
            grant.spend(Binding("s1", pending.request.digest, "v1"), 0)
        self.assertIdle()

    def test_no_more_are_approved_than_were_shown(self) -> None:
        asked = [self.ask(1) for _ in range(5)]
        self.queue.decide(1, Outcome.APPROVED, "ada", calls=2)
        self.assertEqual([one.called for one in asked], [True, True, False, False, False])
        (pending,) = self.queue.pending()
        self.assertEqual((pending.number, pending.calls), (2, 3))
        self.queue.decide(2, Outcome.DENIED, "ada", calls=1)
        self.assertEqual({self.successResultOf(one).outcome for one in asked[2:]}, {Outcome.DENIED})
        self.assertIdle()

    def test_what_differs_in_anything_that_is_shown_is_another_question(self) -> None:
        self.ask(1), self.ask(2), self.ask(1, version="v2"), self.ask(1, scope=make_scope()), self.ask(True)
        self.queue.ask(replace(make_request({"n": 1}), reason="leads by a link to /etc/passwd"))
        self.assertEqual([pending.calls for pending in self.queue.pending()], [1] * 6)

    def test_so_many_equal_ones_wait(self) -> None:
        asked = [self.ask(1) for _ in range(LIMIT)]
        self.assertEqual(self.successResultOf(self.ask(1)).outcome, Outcome.TOO_MANY)
        self.assertNoResult(asked[-1])

    def test_one_of_many_is_withdrawn_and_the_others_wait(self) -> None:
        first, second = self.ask(1), self.ask(1)
        first.cancel()
        self.assertEqual(self.successResultOf(first), Answer(Outcome.WITHDRAWN, 1))
        self.assertEqual([pending.calls for pending in self.queue.pending()], [1])
        second.cancel()
        self.assertEqual(self.successResultOf(second), Answer(Outcome.WITHDRAWN, 1))
        self.assertIdle()

    def test_all_are_denied(self) -> None:
        numbers: list[Deferred[int]] = [succeed(4), succeed(5), Deferred()]
        self.queue = make_queue(self.clock, next_number=lambda: numbers.pop(0))
        asked = [self.ask(n) for n in (1, 2, 3)]
        self.assertEqual(self.queue.deny_all("ada"), [4, 5])
        answers = [self.successResultOf(one) for one in asked]
        self.assertEqual([(answer.outcome, answer.by) for answer in answers], [(Outcome.DENIED, "ada")] * 3)
        self.assertIdle()

    def test_a_flood_leaves_no_more_than_the_limit(self) -> None:
        asked = [self.ask(n % 900) for n in range(3000)]
        self.assertEqual(len(self.queue.pending()), LIMIT)
        self.assertLessEqual(sum(not one.called for one in asked), LIMIT * LIMIT)
        self.assertEqual(len(self.clock.getDelayedCalls()), LIMIT)

    def test_a_kept_approval_lets_all_equal_ones_through(self) -> None:
        asked = [self.ask(1, scope=make_scope()) for _ in range(3)]
        self.queue.decide(1, Outcome.APPROVED, "ada", keep=True, calls=1)
        self.assertEqual({self.successResultOf(one).outcome for one in asked}, {Outcome.APPROVED})
