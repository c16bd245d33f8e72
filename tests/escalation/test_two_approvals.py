"""Calls that two different principals must approve."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import StaleDecision, UsageError
from ironcurtain.escalation import ApprovalAdded, EscalationRequest, Outcome, Scope
from ironcurtain.escalation.model import Change
from tests.escalation.doubles import TIMEOUT, make_queue, make_request, make_scope

ANSWERS = st.lists(
    st.tuples(st.sampled_from(("ada", "bob", "eve")), st.sampled_from((Outcome.APPROVED, Outcome.DENIED)))
)


def for_two(call_id: str = "c1", scope: Scope | None = None) -> EscalationRequest:
    """:returns: a request that needs two approvals."""
    return replace(make_request(call_id=call_id, scope=scope), approvals=2)


class TwoApprovalsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.queue = make_queue(self.clock)
        self.seen: list[Change] = []
        self.queue.subscribe(self.seen.append)

    def test_only_the_second_principal_lets_the_call_through(self) -> None:
        asked = self.queue.ask(for_two())
        first = self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertEqual((first.outcome, first.approved_by, first.by), (None, ("ada",), ""))
        self.assertNoResult(asked)
        self.assertEqual(self.queue.pending(), [first])
        self.assertEqual(self.seen[-1], ApprovalAdded(first))
        second = self.queue.decide(1, Outcome.APPROVED, "bob")
        self.assertEqual((second.outcome, second.approved_by, second.by), (Outcome.APPROVED, ("ada", "bob"), "bob"))
        self.assertEqual(second.deciders, "ada and bob")
        self.assertIsNotNone(self.successResultOf(asked).grant)
        with self.assertRaisesRegex(StaleDecision, "approved by ada and bob"):
            self.queue.decide(1, Outcome.DENIED, "eve")

    def test_the_same_principal_counts_once_and_is_told_so(self) -> None:
        asked = self.queue.ask(for_two())
        self.queue.decide(1, Outcome.APPROVED, "ada")
        with self.assertRaisesRegex(StaleDecision, "ada approved escalation 1 already.*another person"):
            self.queue.decide(1, Outcome.APPROVED, "ada")
        self.assertNoResult(asked)
        self.assertEqual([escalation.approved_by for escalation in self.queue.pending()], [("ada",)])

    def test_a_denial_by_anyone_ends_it(self) -> None:
        for by in ("ada", "bob"):
            asked = self.queue.ask(for_two())
            number = self.queue.pending()[0].number
            self.queue.decide(number, Outcome.APPROVED, "ada")
            denied = self.queue.decide(number, Outcome.DENIED, by)
            self.assertEqual((denied.outcome, denied.deciders), (Outcome.DENIED, by))
            self.assertIsNone(self.successResultOf(asked).grant)

    def test_it_expires_as_before_with_one_approval(self) -> None:
        asked = self.queue.ask(for_two())
        self.clock.advance(TIMEOUT - 1)
        self.queue.decide(1, Outcome.APPROVED, "ada")
        self.clock.advance(1)
        self.assertEqual(self.successResultOf(asked).outcome, Outcome.EXPIRED)

    def test_no_approval_is_kept_and_no_kept_one_answers(self) -> None:
        self.queue.ask(for_two(scope=make_scope()))
        self.assertRaises(UsageError, self.queue.decide, 1, Outcome.APPROVED, "ada", keep=True)
        self.queue.ask(make_request(scope=make_scope()))
        self.queue.decide(2, Outcome.APPROVED, "ada", keep=True)
        self.assertNoResult(self.queue.ask(for_two(scope=make_scope())))

    def test_no_more_calls_than_both_saw(self) -> None:
        first = self.queue.ask(for_two("c1"))
        self.queue.decide(1, Outcome.APPROVED, "ada", calls=1)
        later = [self.queue.ask(for_two(call_id)) for call_id in ("c2", "c3")]
        self.queue.decide(1, Outcome.APPROVED, "bob", calls=3)
        self.assertEqual(self.successResultOf(first).outcome, Outcome.APPROVED)
        for asked in later:
            self.assertNoResult(asked)
        (again,) = self.queue.pending()
        self.assertEqual((again.number, again.calls, again.approved_by), (2, 2, ()))

    @settings(max_examples=200)
    @given(ANSWERS)
    def test_any_order_of_answers(self, answers: list[tuple[str, Outcome]]) -> None:
        queue = make_queue(self.clock)
        asked = queue.ask(for_two())
        approved = set[str]()
        expected: Outcome | None = None
        for by, outcome in answers:
            try:
                queue.decide(1, outcome, by)
            except StaleDecision:
                self.assertTrue(expected is not None or by in approved)
                continue
            self.assertIsNone(expected)
            if outcome is Outcome.DENIED:
                expected = Outcome.DENIED
            else:
                approved.add(by)
                expected = Outcome.APPROVED if len(approved) == 2 else None
        if expected is None:
            self.assertNoResult(asked)
            queue.end()
        answer = self.successResultOf(asked)
        self.assertEqual(answer.outcome, expected or Outcome.WITHDRAWN)
        self.assertEqual(answer.grant is not None, expected is Outcome.APPROVED)
