"""Forms for principals: nothing is sent unseen."""

from __future__ import annotations

from ironcurtain.errors import NotShown, UsageError
from ironcurtain.operations import Principal, Role
from tests.operations.test_operations import FORM, OWNER, OperationsTestCase


class FormTests(OperationsTestCase):
    def test_values_need_a_form_that_was_shown_whole(self) -> None:
        number = self.ask_form()
        with self.assertRaisesRegex(NotShown, f"'ironcurtain escalations show {number}'"):
            self.operations.answer(OWNER, number, {"name": "Ada"})
        self.operations.shown(Principal("key:bob", frozenset({Role.VIEW})), number, self.digest(number))
        self.assertRaises(NotShown, self.operations.answer, OWNER, number, {"name": "Ada"})
        self.operations.shown(OWNER, number, self.digest(number))
        self.assertEqual(self.operations.answer(OWNER, number, {"name": "Ada"}).outcome, "answered")

    def test_digest_of_the_form_is_enough(self) -> None:
        number = self.ask_form()
        self.assertEqual(self.operations.answer(OWNER, number, {"name": "Ada"}, self.digest(number)).by, OWNER.name)

    def test_cancelling_needs_no_look(self) -> None:
        self.assertEqual(self.operations.answer(OWNER, self.ask_form(), None).outcome, "cancelled")

    def test_view_has_the_form_and_never_the_values(self) -> None:
        number = self.ask_form()
        (waiting,) = self.operations.escalations(OWNER)
        self.assertEqual(waiting.form, FORM)
        self.assertRaises(UsageError, self.operations.answer, OWNER, number, {"name": 7}, waiting.digest)
        self.operations.answer(OWNER, number, {"name": "Ada"}, waiting.digest)
        (closed,) = self.operations.escalations(OWNER, closed=True)
        self.assertNotIn("Ada", repr(closed))
        events = self.operations.events(OWNER, self.session.number, 0)
        self.assertIn("Who are you?", repr(events))
        self.assertNotIn("Ada", repr(events))
