"""Noticing that a shell shows no marks."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.marks_watch import EXEC_LOOKS, EXEC_SECONDS, LOOK_SECONDS, MarksWatch
from ironcurtain.shell.wrapped import MARKS_SECONDS
from tests.shell.wrapped import AgentTestCase


class MarksWatchTests(SynchronousTestCase):
    """A shell whose state the test says."""

    def setUp(self) -> None:
        self.clock, self.told = Clock(), 0
        self.replaced = self.edits = False
        self.watch = MarksWatch(self.clock, lambda: self.replaced, lambda: self.edits, self.tell)
        self.watch.begin(2.0, possible=True)

    def tell(self) -> None:
        self.told += 1

    def test_a_shell_that_reads_its_files_has_time(self) -> None:
        self.clock.pump([LOOK_SECONDS] * 60)
        self.assertEqual(self.told, 0)
        self.assertFalse(self.watch.prompted())
        self.clock.pump([LOOK_SECONDS] * 60)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), (0, []))

    def test_a_prompt_without_marks_is_told_of_once(self) -> None:
        self.edits = True
        self.clock.advance(2.0)
        self.assertEqual(self.told, 0)
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), (1, []))
        self.assertTrue(self.watch.prompted())

    def test_a_question_that_was_answered_meanwhile_is_no_prompt(self) -> None:
        for edits in (True, False) * 5:
            self.edits = edits
            self.clock.advance(2.0 if not self.clock.seconds() else LOOK_SECONDS)
        self.assertEqual(self.told, 0)

    def test_another_program_in_its_place_is_told_of_without_a_line_editor(self) -> None:
        self.replaced = True
        self.watch.entered()
        self.clock.advance(EXEC_SECONDS)
        self.assertEqual(self.told, 0)
        self.clock.advance(2.0)
        self.assertEqual(self.told, 1)

    def test_a_shell_that_cannot_have_marks_is_told_of_by_time(self) -> None:
        self.watch.stop()
        self.watch.begin(0.2, possible=False)
        self.clock.advance(0.2)
        self.assertEqual(self.told, 1)

    def test_a_program_that_takes_its_place_late_is_noticed(self) -> None:
        self.watch.prompted()
        self.watch.entered()
        self.clock.advance(EXEC_SECONDS)
        self.assertEqual(self.told, 0)
        self.replaced = True
        self.clock.advance(2 * EXEC_SECONDS)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), (1, []))

    def test_looks_are_bounded_and_begin_again_with_each_enter(self) -> None:
        self.watch.prompted()
        for _ in range(2):
            self.watch.entered()
            self.clock.pump([EXEC_SECONDS * 2**look for look in range(EXEC_LOOKS - 1)])
            self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        self.clock.advance(EXEC_SECONDS * 2**EXEC_LOOKS)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), (0, []))

    def test_an_end_ends_it(self) -> None:
        self.clock.advance(2.0)
        self.watch.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_an_end_ends_the_looks(self) -> None:
        self.watch.prompted()
        self.watch.entered()
        self.watch.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])


class ReplacedTests(AgentTestCase):
    """Another program is in the place of the shell."""

    def test_one_that_draws_the_screen_gets_all_keys_and_no_sentences(self) -> None:
        self.start()
        self.shows(b"\x1b[?1049hvim")
        self.eye.new()
        self.clock.advance(MARKS_SECONDS)
        self.types(b"## heading\r")
        self.assertEqual((self.eye.new(), self.pty.typed), (b"", b"## heading\r"))
        self.shows(b"\x1b[?1049l")
        self.clock.advance(1)
        self.assertIn(b"begin an instruction with ##", self.eye.new())
