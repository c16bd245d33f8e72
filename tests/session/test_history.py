from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.history import INTERRUPTED, History, read_turns
from ironcurtain.session.model import Turn, Usage
from tests.audit.doubles import file_limit, scratch


def make_turn(number: int) -> Turn:
    usage = Usage(input_tokens=10, output_tokens=number, cost=0.5)
    message, answer = f"message {number}\u2028", "answer\n" * 3
    return Turn(number=number, message=message, answer=answer, usage=usage, timestamp="2026-01-02T03:04:05.000Z")


class HistoryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self) / "history.jsonl"

    def test_what_is_written_is_read(self) -> None:
        history = History(self.path)
        turns = [make_turn(number) for number in range(1, 4)]
        for turn in turns:
            history.append(turn)
        self.assertEqual(read_turns(self.path), turns)
        self.assertEqual(history.turns, turns)
        self.assertEqual(self.path.read_bytes().count(b"\n"), 3)
        self.assertEqual(self.path.stat().st_mode & 0o7777, 0o600)

    def test_it_goes_on_where_it_was(self) -> None:
        History(self.path).append(make_turn(1))
        history = History(self.path)
        history.append(make_turn(2))
        self.assertEqual([turn.number for turn in history.turns], [1, 2])
        self.assertEqual(read_turns(self.path), history.turns)

    def test_first_message_is_known_from_its_begin_on(self) -> None:
        history = History(self.path)
        self.assertEqual(history.first, "")
        for number in (1, 2):
            history.begin(make_turn(number).message, "2026-01-02T03:04:05.000Z")
            self.assertEqual(history.first, make_turn(1).message)
            history.append(make_turn(number))
        self.assertEqual(History(self.path).first, make_turn(1).message)

    def test_no_file_is_no_turns(self) -> None:
        self.assertEqual(read_turns(self.path), [])

    def test_a_line_torn_anywhere_is_passed_over(self) -> None:
        history = History(self.path)
        history.append(make_turn(1))
        first = self.path.stat().st_size
        history.append(make_turn(2))
        whole = self.path.read_bytes()
        for cut in range(first, len(whole) - 1):
            self.path.write_bytes(whole[:cut])
            self.assertEqual(read_turns(self.path), [make_turn(1)], cut)

    def test_a_turn_after_a_torn_one_is_whole(self) -> None:
        history = History(self.path)
        history.append(make_turn(1))
        big = make_turn(2)
        self.path.write_bytes(self.path.read_bytes() + b"\n" * 200_000)
        with file_limit(self.path.stat().st_size + 20):
            self.assertRaises(OSError, history.append, big)
        with file_limit(self.path.stat().st_size):
            self.assertRaises(OSError, history.append, big)
        history.append(make_turn(3))
        self.assertEqual(read_turns(self.path), [make_turn(1), make_turn(3)])
        self.assertEqual([turn.number for turn in history.turns], [1, 2, 2, 3])

    def test_a_turn_after_the_torn_line_of_a_process_that_died_is_whole(self) -> None:
        self.path.write_bytes(b'{"number":1,"mess')
        History(self.path).append(make_turn(1))
        self.assertEqual(read_turns(self.path), [make_turn(1)])

    def test_a_turn_without_an_end_was_interrupted(self) -> None:
        history = History(self.path)
        history.begin("first", "t1")
        self.assertEqual(history.turns, [])
        history.append(make_turn(1))
        history.begin("second", "t2")
        for _ in range(2):
            one, two = read_turns(self.path)
            self.assertEqual(one, make_turn(1))
            self.assertEqual((two.number, two.message, two.answer, two.timestamp), (2, "second", "", "t2"))
            self.assertEqual(two.error, INTERRUPTED)
            self.assertFalse(two.usage.token_tracking_available)
        resumed = History(self.path)
        resumed.begin("third", "t3")
        self.assertEqual([turn.error for turn in read_turns(self.path)], ["", INTERRUPTED, INTERRUPTED])
        resumed.append(make_turn(3))
        self.assertEqual([turn.number for turn in read_turns(self.path)], [1, 2, 3])
        self.assertEqual([turn.error for turn in read_turns(self.path)], ["", INTERRUPTED, ""])

    def test_a_link_is_not_followed(self) -> None:
        target = self.path.with_name("target")
        self.path.symlink_to(target)
        self.assertRaises(OSError, History(self.path).append, make_turn(1))
        self.assertFalse(target.exists())
