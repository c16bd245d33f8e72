"""Forms in a conversation: each line goes to its field, and none of them to the agent."""

from __future__ import annotations

from math import inf

from twisted.internet.defer import Deferred

from ironcurtain.escalation import Outcome
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.escalation.form_values import Field
from ironcurtain.escalation.forms import Form
from tests.cli.terminal.frontends import FrontEndCase

FORM = Form(
    message="Who are you?\x1b[2J",
    fields=(Field(name="name", kind="text", required=True), Field(name="age", kind="integer", least=0, default=36)),
)


class AnsweringTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())
        self.session.raise_escalation(5, form=FORM)
        self.draw()

    def test_banner_shows_the_form_and_how_to_answer(self) -> None:
        self.assertIn("Who are you?\\x1b[2J", self.surface.text)
        self.assertIn("2. age: a whole number, at least 0, by default 36", self.surface.text)
        self.assertIn("Type /answer 5 or /deny 5 within", self.surface.text)
        self.assertNotIn("cannot be undone", self.surface.text)

    def test_fields_are_asked_one_after_the_other_and_sent_on_yes(self) -> None:
        self.type("/answer 5", "", "Ada", "x", "40", "send it")
        self.assertIn("it is required", self.surface.text)
        self.assertIn("write at least 0", self.surface.text.replace("a whole number ", ""))
        self.assertIn("name = Ada", self.surface.text)
        self.assertEqual(self.session.answers, [])
        self.type("yes")
        self.assertEqual(self.session.answers, [(5, {"name": "Ada", "age": 40}, "digest-5")])
        self.assertEqual(self.session.messages, [])
        self.type("hello")
        self.assertEqual(self.session.messages, ["hello"])

    def test_prompts_are_escaped_once(self) -> None:
        self.session.raise_escalation(
            6, form=Form(message="?", fields=(Field(name="x", kind="text", pattern=r"^\d$"),))
        )
        self.draw()
        self.type("/answer 6", "a")
        self.assertIn(r"1 of 1: x (text, like ^\\d$)", self.surface.text)
        self.assertIn(r"write a text that matches ^\\d$", self.surface.text)
        self.assertNotIn("\\" * 3, self.surface.text)

    def test_back_decline_cancel_and_later(self) -> None:
        self.type("/answer 5", "Ada", "/back", "Bob", "", "/later")
        self.assertEqual((self.session.answers, self.session.decisions), ([], []))
        self.type("/answer", "/cancel")
        self.assertEqual(self.session.answers, [(5, None, "digest-5")])
        self.session.raise_escalation(6, form=FORM)
        self.draw()
        self.type("/answer 6", "/decline")
        self.assertEqual(self.session.decisions, [(6, Outcome.DENIED, "digest-6")])

    def test_values_can_stand_on_the_line(self) -> None:
        self.type("/answer 5 name='Ada L' age=x")
        self.assertIn("age: write a whole number at least 0", self.surface.text)
        self.type("/answer 5 name='Ada L'")
        self.assertEqual(self.session.answers, [(5, {"name": "Ada L"}, "digest-5")])

    def test_ctrl_c_leaves_the_form_and_not_the_message(self) -> None:
        self.type("/answer 5")
        self.front.interrupt()
        self.draw()
        self.assertTrue(self.surface.text.endswith("nothing was sent: it waits on"), self.surface.text)
        self.front.interrupt()
        self.draw()
        self.assertIn("press Ctrl-C again to leave", self.surface.text)

    def test_line_for_a_form_that_closed_meanwhile_reaches_nobody(self) -> None:
        self.type("/answer 5")
        self.session.close_escalation(5, "expired")
        self.draw()
        self.type("my name")
        self.assertEqual((self.session.messages, self.session.answers), ([], []))
        self.assertIn("this line was not sent to anybody", self.surface.text)
        assert self.surface.listener is not None
        self.surface.listener.typed("hello", -inf)
        self.draw()
        self.assertEqual(self.session.messages, ["hello"])

    def test_pasted_confirmation_sends_nothing(self) -> None:
        self.type("/answer 5", "Ada", "")
        assert self.surface.listener is not None
        for pasted in ("yes", "/decline"):
            self.surface.listener.typed(pasted, -inf)
            self.draw()
        self.assertEqual(self.session.answers, [])
        self.assertIn("pasted text decides nothing", self.surface.text)
        self.type("yes")
        self.assertEqual(len(self.session.answers), 1)

    def test_confirmation_typed_ahead_or_at_once_sends_nothing(self) -> None:
        """Neither one that was begun before the values were shown, nor one that had no second to read them."""
        self.type("/answer 5", "Ada")
        assert self.surface.listener is not None
        before = self.clock.seconds()
        self.surface.listener.typed("", before)
        self.surface.listener.typed("yes", before)
        self.draw()
        self.clock.advance(QUIET_SECONDS / 2)
        self.surface.listener.typed("yes", self.clock.seconds())
        self.draw()
        self.assertEqual(self.session.answers, [])
        self.assertIn("it was shown while you were typing: read it, then type yes", self.surface.text)
        self.assertIn("too early: read it, then type yes again", self.surface.text)
        self.type("/back", "37")
        self.surface.listener.typed("yes", self.clock.seconds())
        self.draw()
        self.assertEqual(self.session.answers, [])
        self.type("yes")
        self.assertEqual(self.session.answers, [(5, {"name": "Ada", "age": 37}, "digest-5")])

    def test_call_is_not_answered(self) -> None:
        self.session.raise_escalation(7)
        self.draw()
        self.type("/answer 7")
        self.assertIn("7 is no form: see /approve and /deny", self.surface.text)
        self.type("/answer 5 x", '/answer 5 "x')
        self.assertIn("write it as NAME=VALUE", self.surface.text)
        self.assertIn("a quotation mark is missing", self.surface.text)

    def test_message_that_is_typed_meanwhile_says_how_to_answer(self) -> None:
        self.type("one", "two")
        self.assertIn("to answer, type /answer 5 or /deny 5", self.surface.text)


class PlainTests(FrontEndCase):
    """Without a terminal, a form is answered on one line."""

    live = False

    def test_values_have_to_stand_on_the_line(self) -> None:
        self.begin(self.front.interactive())
        self.session.raise_escalation(5, form=FORM)
        self.draw()
        self.type("/answer 5")
        self.assertIn("give values, like: /answer 5 NAME=VALUE", self.surface.text)
        self.type("/answer 5 name=Ada")
        self.assertEqual(self.session.answers, [(5, {"name": "Ada"}, "digest-5")])
