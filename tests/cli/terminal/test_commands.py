from __future__ import annotations

from collections.abc import Callable
from math import inf

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.terminal.commands import LineQueue, choose, parse
from ironcurtain.errors import UsageError
from ironcurtain.escalation.decision_keys import DecisionKeys, Part, ShownPart
from ironcurtain.view.commands import Command, Message, Wrong
from tests.view.strategies import harmful, nasty


class ParseTests(SynchronousTestCase):
    """Lines of a conversation."""

    def test_unknown_ones_are_said(self) -> None:
        for line in ("/etc/passwd is what?", "/quit now", "/"):
            answer = parse(line)
            assert isinstance(answer, Wrong)
            self.assertIn("put a space before it", answer.why)
        self.assertEqual(parse(" /etc/passwd is what?"), Message("/etc/passwd is what?"))

    def test_commands_for_the_agent_are_messages(self) -> None:
        self.assertEqual(parse("/model  opus", "/model  opus"), Message("/model opus"))
        self.assertEqual(
            (parse("/clear"), parse("/compact the tests")), (Message("/clear"), Message("/compact the tests"))
        )

    def test_blank_lines_are_nothing(self) -> None:
        self.assertIsNone(parse(" \t "))

    @given(nasty)
    def test_all_else_is_for_the_agent(self, text: str) -> None:
        if text.strip() and not text.startswith("/"):
            self.assertEqual(parse(text), Message(text.strip()))


class ChooseTests(SynchronousTestCase):
    """Number 3 waits, shown at the times given."""

    def chosen(self, asked: Command, shown: float, began: float, ended: float = 9.0) -> int:
        keys = DecisionKeys()
        keys.show(ShownPart(3, "d", Part.ROW), shown)
        return choose(asked, {3: "d"}, keys, (began, ended), {})

    def test_the_only_one_needs_no_number(self) -> None:
        self.assertEqual(self.chosen(Command("approve"), 1.0, 2.0), 3)
        self.assertEqual(self.chosen(Command("show"), 1.0, 2.0), 3)

    def test_one_that_came_while_typing_is_not_meant(self) -> None:
        for number in (None, 3):
            with self.assertRaisesRegex(UsageError, "shown while you were typing: read it, then type /approve 3"):
                self.chosen(Command("approve", number), 2.5, 2.0)
        self.assertEqual(self.chosen(Command("show", 3), 2.5, 2.0), 3)

    def test_a_command_that_ends_within_a_second_is_too_early(self) -> None:
        for word in ("approve", "deny"):
            with self.assertRaisesRegex(UsageError, f"too early: read it, then type /{word} 3 again"):
                self.chosen(Command(word, 3), 1.0, 1.1, 1.9)
            self.assertEqual(self.chosen(Command(word, 3), 1.0, 1.1, 2.0), 3)

    def test_pasted_text_is_no_command_that_decides(self) -> None:
        with self.assertRaisesRegex(UsageError, "pasted text decides nothing: type /deny 3"):
            self.chosen(Command("deny", 3), 1.0, -inf)

    def test_what_a_program_writes_is_not_delayed(self) -> None:
        self.assertEqual(self.chosen(Command("approve", 3), 1.0, inf, 1.0), 3)

    def test_one_that_was_never_shown_cannot_be_meant(self) -> None:
        self.refuse("shown while", Command("approve"), [3])
        self.refuse("no escalation 3", Command("approve", 3), [3])

    def test_several_are_listed(self) -> None:
        self.refuse(r"like: /deny 3 \(waiting: 3, 5\)", Command("deny"), [5, 3])

    def test_none_is_said(self) -> None:
        self.refuse("no call waits for a decision", Command("approve"), [])

    def test_one_that_is_over_is_said_with_its_outcome(self) -> None:
        self.refuse("too late: escalation 3: denied by al", Command("approve", 3), [])

    def refuse(self, why: str, asked: Command, waiting: list[int]) -> None:
        """The choice must fail, since nothing was shown."""
        outcomes = {3: "escalation 3: denied by al"} if not waiting else {}
        with self.assertRaisesRegex(UsageError, why) as caught:
            choose(asked, dict.fromkeys(waiting, "d"), DecisionKeys(), (2.0, 9.0), outcomes)
        self.assertEqual(harmful(str(caught.exception)), [])


class QueueTests(SynchronousTestCase):
    def test_a_message_waits_for_the_answer(self) -> None:
        queue = filled("one", "two")
        self.assertEqual(queue.next(False, False), Message("one"))
        self.assertIsNone(queue.next(True, False))
        self.assertEqual(queue.next(False, False), Message("two"))

    def test_a_decision_waits_for_an_escalation_or_the_answer(self) -> None:
        queue = filled("/approve", "/deny")
        self.assertIsNone(queue.next(True, False))
        self.assertEqual(queue.next(True, True), Command("approve"))
        self.assertEqual(queue.next(False, False), Command("deny"))

    def test_only_what_is_first_counts(self) -> None:
        self.assertIsNone(filled("two", "/approve").next(True, True))

    def test_the_end_waits_for_the_last_answer(self) -> None:
        queue = filled("")
        self.assertIsNone(queue.next(False, False))
        queue.add("/quit", inf)
        self.assertIsNone(queue.next(True, False))
        self.assertEqual(queue.next(False, False), Command("quit"))

    @given(st.lists(st.sampled_from(("a", "b", "/approve", "/help", "/oops", "")), max_size=8), st.data())
    def test_lines_keep_their_order(self, lines: list[str], data: st.DataObject) -> None:
        queue, out = filled(*lines, "/quit"), []
        flag: Callable[[], bool] = lambda: data.draw(st.booleans())  # noqa: E731
        for _ in range(200):
            got = queue.next(flag(), flag())
            if got == Command("quit"):
                break
            out += [got] if got is not None else []
        wanted = [parsed for parsed in map(parse, lines) if parsed is not None]
        self.assertEqual(out, wanted[: len(out)])


def filled(*lines: str) -> LineQueue:
    """:returns: a queue of lines."""
    queue = LineQueue()
    for line in lines:
        queue.add(line, inf)
    return queue
