"""Instructions that wait for a model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import SessionError
from ironcurtain.llm.model import ModelError
from ironcurtain.shell.waiting import LIMIT, Taken, WaitingInstructions
from tests.shell.model import last_words
from tests.shell.wrapped import PROMPT, AgentTestCase


def waiting(*instructions: str) -> WaitingInstructions:
    """:returns: these, which no model has got."""
    found = WaitingInstructions()
    for instruction in instructions:
        found.ended(found.take(instruction), True)
    return found


class WaitingTests(SynchronousTestCase):
    """Without a terminal."""

    def test_one_that_no_model_got_is_listed(self) -> None:
        queue = WaitingInstructions()
        self.assertIn("waits as number 1", queue.ended(queue.take("make two files"), True)[0])
        queue.ended(queue.take("a\x1b[2Jb"), True)
        self.assertEqual(queue.take("?").said[:2], ("1  make two files", "2  a\\x1b[2Jb"))

    def test_the_oldest_or_a_number_begins_and_is_gone_once_a_model_has_answered(self) -> None:
        queue = waiting("one", "two", "three")
        self.assertEqual(queue.take("+ 2"), Taken("two", 2))
        queue.ended(Taken("two", 2), False)
        self.assertEqual(queue.take("+"), Taken("one", 1))
        queue.ended(Taken("one", 1), False)
        self.assertEqual(queue.take("+"), Taken("three", 3))

    def test_one_that_fails_again_keeps_its_place(self) -> None:
        queue = waiting("one", "two")
        self.assertIn("instruction 1 still waits", queue.ended(queue.take("+"), True)[0])
        self.assertEqual(queue.take("+"), Taken("one", 1))

    def test_discarded(self) -> None:
        queue = waiting("one", "two", "three")
        self.assertEqual(queue.take("-2").said, ("discarded: 2",))
        self.assertEqual(queue.take("+ 2").said[0], "no instruction 2 waits")
        self.assertEqual(queue.take("-").said, ("discarded: 1, 3",))
        self.assertEqual(queue.take("?").said, ("no instruction waits",))

    def test_a_model_that_answers_brings_the_list(self) -> None:
        queue = waiting("one")
        said = queue.ended(queue.take("two"), False)
        self.assertEqual((said[0][:21], said[1]), ("a model answers again", "1  one"))
        queue.take("-")
        self.assertEqual(queue.ended(queue.take("two"), False), ())

    def test_not_more_than_so_many(self) -> None:
        queue = waiting(*map(str, range(LIMIT)))
        self.assertIn("not kept", queue.ended(queue.take("more"), True)[0])
        self.assertEqual(len(queue.take("-").said[0].split(",")), LIMIT)

    def test_without_any_the_signs_are_instructions(self) -> None:
        for text in ("+", "- 1", "?!", "+x"):
            self.assertEqual(WaitingInstructions().take(text), Taken(text))

    @given(st.lists(st.tuples(st.sampled_from(("a", "b", "?", "+", "-", "+ 2", "- 1", "- 30")), st.booleans())))
    def test_nothing_is_lost_or_begun_twice(self, course: list[tuple[str, bool]]) -> None:
        queue, expected, last = WaitingInstructions(), dict[int, str](), 0
        for line, unreached in course:
            taken = queue.take(line)
            if taken.instruction:
                self.assertEqual(taken.instruction, expected.get(taken.number, line) if taken.number else line)
                queue.ended(taken, unreached)
                if taken.number is not None and not unreached:
                    del expected[taken.number]
                elif taken.number is None and unreached and len(expected) < LIMIT:
                    last += 1
                    expected[last] = taken.instruction
            elif line == "-":
                expected.clear()
            elif line == "- 1":
                expected.pop(1, None)
            listed = [line for line in queue.take("?").said if line[0].isdigit()]
            self.assertEqual(listed, [f"{number}  {text}" for number, text in expected.items()])


OFFLINE = ModelError("network", "api.example.org cannot be reached", retryable=True)


class QueueTests(AgentTestCase):
    """In the user's terminal."""

    def test_it_waits_is_shown_again_and_begins_when_the_user_says_so(self) -> None:
        self.ready()
        self.instructs("make two files")
        self.model.fail(OFFLINE)
        self.turn()
        self.assertIn(b"no model answers: the instruction waits as number 1", self.eye.new())
        self.instructs("hello")
        self.says("Hello.")
        shown = self.eye.new()
        self.assertIn(b"a model answers again", shown)
        self.assertIn(b"1  make two files", shown)
        self.assertTrue(shown.endswith(b"$ "))
        self.assertEqual(len(self.model.requests), 2)
        self.instructs("+")
        self.assertIn("make two files", last_words(self.model.requests[-1]))
        self.says("Both are there.")
        self.assertEqual([turn.message for turn in self.turns], ["make two files", "hello", "make two files"])
        self.eye.new()
        self.instructs("?")
        self.assertIn(b"no instruction waits", self.eye.new())
        self.assertEqual(len(self.model.requests), 3)

    def test_one_of_which_something_was_done_does_not_wait(self) -> None:
        self.ready()
        self.instructs("do two things")
        self.plans("deny me")
        self.model.fail(OFFLINE)
        self.turn()
        self.assertNotIn(b"waits", self.eye.new())

    def test_one_that_the_model_refuses_does_not_wait(self) -> None:
        self.ready()
        self.instructs("x" * 100)
        self.model.fail(ModelError("context-overflow", "too long"))
        self.turn()
        self.assertNotIn(b"waits", self.eye.new())

    def test_without_a_terminal_it_is_an_error(self) -> None:
        Deferred.fromCoroutine(self.agent.start())
        self.shows(PROMPT)
        for _ in range(2):
            reply = Deferred.fromCoroutine(self.agent.respond("+"))
            self.model.fail(OFFLINE)
            self.assertIn("cannot be reached", str(self.failureResultOf(reply, SessionError).value))
        self.assertIn("+", last_words(self.model.requests[-1]))
