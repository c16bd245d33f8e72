"""Only what output has changed in a terminal is taken back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.changes import TerminalChanges
from ironcurtain.terminal.sequences import ABORT, RESTORE

SESSION = (
    b"\x1b[?2004h$ \x1b[?2004l\r\x1b[31mred\x1b[0m\x1b[?1h\x1b=\x1b[?1049h\x1b[2;5r\x1b[?25l\x1b[4 q\x1b[?1000;1006h"
    b"\x1b[>1u\x1b[<u\x1b[r\x1b[0 q\x1b[?1000;1006l\x1b[?25h\x1b[?1049l\x1b[?1l\x1b>\x1b(0q\x1b(B\x1b]8;;http://x\x07x\x1b]8;;\x07"
)


def restoration(*output: bytes) -> bytes:
    changes = TerminalChanges()
    for piece in output:
        changes.feed(piece)
    return changes.restoration()


class ChangesTests(SynchronousTestCase):
    def test_a_program_that_takes_its_changes_back_needs_nothing(self) -> None:
        self.assertEqual(restoration(SESSION), b"")

    @given(st.lists(st.integers(0, len(SESSION)), max_size=8))
    def test_output_may_be_cut_anywhere(self, cuts: list[int]) -> None:
        ends = [0, *sorted(cuts), len(SESSION)]
        pieces = [SESSION[start:end] for start, end in pairwise(ends)]
        self.assertEqual(restoration(*pieces), b"")

    def test_what_is_left_is_taken_back(self) -> None:
        for output, expected in (
            (b"\x1b[?1000;1006h", b"\x1b[?1006l\x1b[?1000l"),
            (b"\x1b[?25l", b"\x1b[?25h"),
            (b"\x1b[?7l", b"\x1b[?7h"),
            (b"\x1b[?2004h", b"\x1b[?2004l"),
            (b"\x1b[?1049h", b"\x1b[?1049l"),
            (b"\x1b[1;31mred", b"\x1b[0m"),
            (b"\x1b[4h", b"\x1b[4l"),
            (b"\x1b[2;9r", b"\x1b7\x1b[r\x1b8"),
            (b"\x1b[>1u", b"\x1b[<99u"),
            (b"\x1b[>4;2m", b"\x1b[>4;0m"),
            (b"\x1b[6 q", b"\x1b[0 q"),
            (b"\x1b=", b"\x1b>"),
            (b"\x1b(0", b"\x1b(B"),
            (b"\x0e", b"\x0f"),
            (b"\x1bH", b"\x1b[?5W"),
            (b"\x1b]8;;http://x\x1b\\", b"\x1b]8;;\x1b\\"),
            (b"\x1b[?12h\x1b[5n\x1b[2J text", b""),
        ):
            self.assertEqual(restoration(output), expected, output)

    def test_colours_of_the_terminal_are_taken_back_where_they_count(self) -> None:
        output = b"\x1b]10;#000\x07\x1b]11;#000\x1b\\\x1b]4;1;#000;2;#000\x07\x1b]12;?\x07"
        self.assertEqual(restoration(output), b"")
        changes = TerminalChanges(colours=True)
        changes.feed(output)
        self.assertEqual(changes.restoration(), b"\x1b]104\x1b\\\x1b]111\x1b\\\x1b]110\x1b\\")

    def test_an_incomplete_sequence_is_ended(self) -> None:
        self.assertEqual(restoration(b"\x1b[?1000h\x1b[3"), ABORT + b"\x1b[?1000l")

    def test_it_is_taken_back_once(self) -> None:
        changes = TerminalChanges()
        changes.feed(b"\x1b[?1000h")
        self.assertEqual((changes.restoration(), changes.restoration()), (b"\x1b[?1000l", b""))

    def test_a_reset_takes_all_back(self) -> None:
        for reset in (b"\x1bc", RESTORE):
            self.assertEqual(restoration(b"\x1b[?1000h\x1b[4h", reset), b"", reset)
