"""Forms in the console: filled in on the input line, sent by a confirmed key."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Outcome
from ironcurtain.escalation.form_values import Field
from ironcurtain.escalation.forms import Form
from tests.console.doubles import Setup, escalation

FORM = Form(
    message="Who are you?\x1b[2J",
    fields=(Field(name="name", kind="text", required=True), Field(name="age", kind="integer", default=36)),
)


class FillingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.form = escalation(5, {"message": "Who are you?"}, form=FORM, tool="elicitation/create", scope="")
        self.setup = Setup(100, 30, self.form)

    def line(self, text: str) -> str:
        """:returns: the screen after a line was typed."""
        self.setup.type(text)
        return self.setup.type("\r")

    def test_form_is_shown_with_its_fields(self) -> None:
        text = self.setup.terminal.text
        for part in ("Who are you?\\x1b[2J", "1. name: text, required", "2. age: a whole number, by default 36"):
            self.assertIn(part, text)
        self.assertNotIn("undo ", text)

    def test_values_are_sent_after_a_confirmed_key(self) -> None:
        self.assertIn("1 of 2: name", self.setup.type("a"))
        self.assertIn("it is required; 1 of 2: name", self.line(""))
        self.assertIn("2 of 2: age", self.line("Ada"))
        self.assertIn("name = Ada; age = 40", self.line("40"))
        self.assertIn("Send to the server what you entered for 5", self.setup.terminal.text)
        self.assertEqual(self.setup.source.answers, [])
        self.assertIn("was answered by me", self.setup.type("y"))
        self.assertEqual(self.setup.source.answers, [(5, {"name": "Ada", "age": 40}, self.form.digest)])

    def test_all_that_was_entered_is_shown_before_it_is_sent(self) -> None:
        self.setup.type("a")
        self.line("Ada " * 60)
        self.assertIn("; age = 36", self.line(""))

    def test_address_is_confirmed_in_other_words(self) -> None:
        form = Form(message="Log\nin", url="https://a.example/x", host="a.example")
        self.setup = Setup(100, 30, escalation(5, {"message": "Log in"}, form=form, scope=""))
        self.assertIn("s1  filesystem.read_text_file  a.example Log in", self.setup.terminal.text)
        self.assertIn("Tell the server that you opened the address of 5", self.setup.type("a"))

    def test_other_key_sends_nothing(self) -> None:
        self.setup.type("a")
        self.line("Ada")
        self.line("")
        self.assertIn("nothing was decided", self.setup.type("\x03"))
        self.assertEqual(self.setup.source.answers, [])

    def test_escape_leaves_the_form_waiting(self) -> None:
        self.setup.type("aAda")
        self.assertIn("nothing was sent: it waits on", self.setup.type("\x03"))
        self.assertEqual((self.setup.source.answers, self.setup.source.decided), ([], []))

    def test_form_is_declined_and_cancelled_by_command(self) -> None:
        self.setup.type("a")
        self.line("/decline")
        self.assertEqual(self.setup.source.decided, [(5, Outcome.DENIED, self.form.digest)])
        self.setup.source.put(escalation(6, form=FORM, scope=""))
        self.setup.settle()
        self.line("/answer 6")
        self.line("/cancel")
        self.assertEqual([answer[:2] for answer in self.setup.source.answers], [(6, None)])

    def test_form_that_closes_meanwhile_is_left(self) -> None:
        self.setup.type("aAd")
        self.setup.source.close(5, "expired", "")
        self.setup.source.tell()
        self.assertIn("nothing was sent: too late: escalation 5 expired", self.setup.settle())
        self.setup.type("a\r")
        self.assertEqual(self.setup.source.answers, [])

    def test_forms_are_not_approved_with_all_others(self) -> None:
        self.setup.source.put(escalation(6))
        self.setup.settle()
        self.setup.type("jk")
        self.line("/approve all")
        self.setup.type("y")
        self.assertNotIn(5, [number for number, _, _ in self.setup.source.decided])
        self.assertEqual(self.setup.source.answers, [])
