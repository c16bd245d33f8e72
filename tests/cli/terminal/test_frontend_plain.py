from __future__ import annotations

from twisted.internet.defer import Deferred

from ironcurtain.escalation import Outcome
from ironcurtain.session.model import OWNER_GONE
from tests.cli.terminal.doubles import INFO
from tests.cli.terminal.frontends import FrontEndCase


class PlainConversationTests(FrontEndCase):
    live = False

    def setUp(self) -> None:
        super().setUp()
        self.done: Deferred[int] = self.begin(self.front.interactive())

    def end(self, status: int) -> None:
        """The input ends, and with the last answer the session."""
        self.front.input_ended()
        self.draw()
        self.assertEqual(self.successResultOf(self.done), status)
        self.clean()

    def test_messages_wait_for_the_answer_before(self) -> None:
        self.type("one", "two")
        self.assertEqual(self.session.messages, ["one"])
        self.session.reply("1")
        self.assertEqual(self.session.messages, ["one", "two"])
        self.session.reply("2")
        self.draw()
        self.assertEqual(self.surface.answers, ["1", "2"])
        self.end(0)

    def test_the_end_of_input_waits_for_the_answer(self) -> None:
        self.type("one")
        self.front.input_ended()
        self.draw()
        self.assertNoResult(self.done)
        self.session.reply("1")
        self.end(0)
        self.assertEqual(self.surface.answers, ["1"])

    def test_only_answers_are_answers(self) -> None:
        self.type("one")
        self.session.raise_escalation(3)
        self.draw()
        self.session.reply("1\n2")
        self.type("/help")
        self.assertEqual(self.surface.answers, ["1", "2"])
        self.assertNotIn("> one", self.surface.printed)
        self.assertIn("Escalation 3", self.surface.text)

    def test_a_decision_waits_for_an_escalation(self) -> None:
        self.type("one", "/approve", "/deny", "two")
        self.assertEqual(self.session.decisions, [])
        self.session.raise_escalation(3)
        self.assertEqual(self.session.decisions, [(3, Outcome.APPROVED, "digest-3")])
        self.session.raise_escalation(4)
        self.assertEqual(self.session.decisions[1:], [(4, Outcome.DENIED, "digest-4")])
        self.assertEqual(self.session.messages, ["one"])

    def test_what_a_person_types_ahead_at_a_terminal_decides_nothing(self) -> None:
        self.type("one")
        self.front.typed("/approve", self.clock.seconds())
        self.clock.advance(5)
        self.session.raise_escalation(3)
        self.draw()
        self.assertIn("it was shown while you were typing: read it, then type /approve 3", self.surface.text)
        self.front.typed("/approve", self.clock.seconds())
        self.assertIn(3, self.session.pending)
        self.clock.advance(1)
        self.front.typed("/approve", self.clock.seconds())
        self.draw()
        self.assertEqual(self.session.decisions, [(3, Outcome.APPROVED, "digest-3")])

    def test_what_is_shown_first_is_approved_then(self) -> None:
        self.type("one", "/show", "/approve")
        self.session.raise_escalation(3, {"content": "".join(f"line {n}\n" for n in range(100))})
        self.draw()
        self.assertIn("     line 60", self.surface.printed)
        self.assertEqual(self.session.decisions, [(3, Outcome.APPROVED, "digest-3")])

    def test_a_decision_for_nothing_is_said_after_the_answer(self) -> None:
        self.type("one", "/approve")
        self.draw()
        self.assertNotIn("nothing waits", self.surface.text)
        self.session.reply("1")
        self.draw()
        self.assertIn("no call waits for a decision", self.surface.text)

    def test_a_last_message_that_failed_is_the_status(self) -> None:
        self.type("one", "two")
        self.session.fail("overloaded")
        self.session.reply("2")
        self.type("three")
        self.session.fail("overloaded")
        self.draw()
        self.assertEqual(self.surface.text.count("overloaded"), 2)
        self.end(1)

    def test_quit(self) -> None:
        self.type("one", "/quit")
        self.assertNoResult(self.done)
        self.session.reply("1")
        self.end(0)

    def test_a_hundred_lines_at_once(self) -> None:
        for i in range(100):
            self.front.typed(f"/help {i}", float("inf"))
        self.end(0)
        self.assertEqual(self.surface.text.count("/help takes no argument"), 100)


class DeadOwnerTests(FrontEndCase):
    live = False

    def test_how_to_go_on_is_said(self) -> None:
        done: Deferred[int] = self.begin(self.front.interactive())
        self.session.end(OWNER_GONE)
        self.draw()
        self.assertEqual(self.successResultOf(done), 1)
        self.assertIn(f"ironcurtain start --resume {INFO.number}", self.surface.text)


class PlainSingleShotTests(FrontEndCase):
    live = False

    def test_the_end_of_input_changes_nothing(self) -> None:
        done = self.begin(self.front.single_shot("count"))
        self.front.input_ended()
        self.draw()
        self.assertNoResult(done)
        self.session.reply("42")
        self.assertEqual(self.successResultOf(done).text, "42")
        self.assertEqual((self.surface.printed, self.surface.answers), ([], []))
        self.clean()
