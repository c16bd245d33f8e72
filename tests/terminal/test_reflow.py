"""How many rows a narrower terminal makes of one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.reflow import reflows, rows_of


class ReflowTests(SynchronousTestCase):
    def test_only_a_terminal_that_is_known_to_break_rows_anew(self) -> None:
        tmux = {"TERM": "screen-256color", "TMUX": "/tmp/tmux-0/default,1,0"}
        self.assertTrue(reflows(tmux))
        for environ in ({}, {"TERM": "xterm-256color", "VTE_VERSION": "7006"}, {**tmux, "STY": "1.tty"}):
            self.assertFalse(reflows(environ), environ)

    @given(st.integers(0, 300), st.integers(1, 200))
    def test_characters_of_one_column_fill_rows(self, length: int, columns: int) -> None:
        self.assertEqual(rows_of([1] * length, columns), max(-(-length // columns), 1))

    def test_a_wide_character_does_not_stand_across_a_border(self) -> None:
        self.assertEqual([rows_of([1, 2, 2], columns) for columns in (5, 4, 3, 2)], [1, 2, 2, 3])
