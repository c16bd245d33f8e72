"""Nothing is approved unseen, and all that waits can be refused at once."""

from __future__ import annotations

from typing import Any

from ironcurtain.errors import NotFound, NotShown, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.operations import Principal, Role
from tests.operations.test_operations import OWNER, OperationsTestCase


class ShownTests(OperationsTestCase):
    """Nothing is approved unseen."""

    def approve(self, number: int, who: Principal = OWNER, **more: Any) -> str:
        """:returns: the outcome of an approval by number."""
        return self.operations.decide(who, number, Outcome.APPROVED, **more).outcome

    def test_by_its_number_only_what_was_shown_is_approved(self) -> None:
        number, other = self.ask(), self.ask()
        with self.assertRaisesRegex(NotShown, f"not shown to you completely: 'ironcurtain escalations show {number}'"):
            self.approve(number)
        self.operations.shown(OWNER, number, self.digest(number))
        with self.assertRaises(NotShown):
            self.approve(other)
        self.assertEqual(self.approve(number), "approved")
        self.assertEqual([view.number for view in self.operations.escalations(OWNER)], [other])

    def test_what_somebody_else_saw_is_not_seen(self) -> None:
        number = self.ask()
        self.operations.shown(Principal("key:bob", frozenset({Role.VIEW})), number, self.digest(number))
        with self.assertRaises(NotShown):
            self.approve(number)

    def test_what_was_shown_is_what_is_asked(self) -> None:
        number = self.ask()
        with self.assertRaises(StaleDecision):
            self.operations.shown(OWNER, number, "0" * 64)
        with self.assertRaises(NotShown):
            self.approve(number)

    def test_what_is_over_is_said_first(self) -> None:
        number = self.ask()
        self.operations.decide(OWNER, number, Outcome.DENIED)
        with self.assertRaisesRegex(StaleDecision, "was denied by local:ada"):
            self.approve(number)
        with self.assertRaises(StaleDecision):
            self.operations.shown(OWNER, number, "0" * 64)

    def test_no_more_equal_calls_are_approved_than_were_shown(self) -> None:
        number = self.ask(n=1)
        self.operations.shown(OWNER, number, self.digest(number), calls=9)
        self.assertEqual([self.ask(n=1), self.ask(n=1)], [number, number])
        (view,) = self.operations.escalations(OWNER)
        self.assertEqual(view.calls, 3)
        decided = self.operations.decide(OWNER, number, Outcome.APPROVED, calls=3)
        self.assertEqual(decided.calls, 1)
        (view,) = self.operations.escalations(OWNER)
        self.assertEqual((view.number, view.calls), (number + 1, 2))

    def test_what_is_remembered_of_it_is_bounded(self) -> None:
        for _ in range(50):
            number = self.ask()
            self.operations.shown(OWNER, number, self.digest(number))
            self.approve(number)
        self.assertLess(len(self.operations._shown), 3)

    def test_all_are_denied_of_one_session_or_of_all(self) -> None:
        first, second = [self.ask(), self.ask()], self.create()
        other = self.ask(session=second)
        self.assertEqual(self.operations.deny_all(OWNER, self.session.number), first)
        self.assertEqual([view.number for view in self.operations.escalations(OWNER)], [other])
        self.assertEqual(self.operations.deny_all(OWNER), [other])
        self.assertEqual(self.operations.deny_all(OWNER), [])
        with self.assertRaises(NotFound):
            self.operations.deny_all(OWNER, 99)
