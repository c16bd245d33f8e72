"""Text in columns: nothing is lost, and nothing is wider than was said."""

from __future__ import annotations

import sys

import urwid
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.text import age, cells, clip, cut, left, pad, wrap
from ironcurtain.text.columns import Span, plain
from ironcurtain.text.display import one_line


class WidthTests(SynchronousTestCase):
    """Our count of columns is the one that urwid draws with, or more."""

    def test_no_character_is_wider_than_counted(self) -> None:
        urwid.set_encoding("utf-8")
        surprising = []
        for number in range(0x20, sys.maxunicode + 1):
            character = chr(number)
            shown = one_line(character)
            if shown == character and urwid.calc_width(character, 0, 1) > cells(character):
                surprising.append(hex(number))
        self.assertEqual(surprising, [])

    def test_combining_characters_take_room(self) -> None:
        self.assertEqual(cells("e" + "\u0301" * 100), 101)


class BreakTests(SynchronousTestCase):
    """Lines that are broken or cut."""

    @given(st.text(st.sampled_from("ab \u4e00\u0301-")), st.integers(2, 30))
    def test_what_is_broken_is_whole(self, text: str, width: int) -> None:
        parts = list(wrap(text, width))
        self.assertEqual("".join(parts).replace(" ", ""), text.replace(" ", ""))
        self.assertTrue(all(cells(part) <= width for part in parts))

    @given(st.text(st.sampled_from("ab \u4e00")), st.integers(0, 30))
    def test_what_is_cut_fits_and_says_so(self, text: str, width: int) -> None:
        shown = cut(text, width)
        self.assertLessEqual(cells(shown), width)
        self.assertTrue(shown == text or shown.endswith("…") or width == 0)

    @given(st.text(st.sampled_from("ab \u4e00")), st.integers(0, 30))
    def test_padded_text_has_the_width(self, text: str, width: int) -> None:
        self.assertEqual(cells(pad(text, width)), width)

    @given(st.lists(st.text(st.sampled_from("ab\u4e00"))), st.integers(0, 30))
    def test_a_clipped_line_fits(self, texts: list[str], width: int) -> None:
        self.assertLessEqual(cells(plain(clip(tuple(Span(text) for text in texts), width))), width)


class TimeTests(SynchronousTestCase):
    """Times for people."""

    def test_what_is_left(self) -> None:
        self.assertEqual([left(299.9), left(60), left(0.5), left(-3)], ["4:59", "1:00", "0:00", "0:00"])

    def test_how_old(self) -> None:
        self.assertEqual([age(3), age(119), age(7200), age(90000), age(-1)], ["3 s", "1 min", "2 h", "1 d", "0 s"])
