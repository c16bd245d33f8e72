"""Text in columns: nothing is lost, and nothing is wider than was said."""

from __future__ import annotations

import sys

import urwid
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.columns import Span, cells, clip, cut, fold, pad, unstyled, wrap
from ironcurtain.text.display import one_line

texts = st.text(st.sampled_from("ab  漢é\u0301x-"), max_size=80)


class WidthTests(SynchronousTestCase):
    """Our count of columns is the one that urwid draws with, or more."""

    def test_no_character_is_wider_than_counted(self) -> None:
        urwid.set_encoding("utf-8")
        surprising = []
        for number in range(0x20, sys.maxunicode + 1):
            character = chr(number)
            if urwid.calc_width(character, 0, 1) > cells(character) and one_line(character) == character:
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
        self.assertLessEqual(cells(unstyled(clip(tuple(Span(text) for text in texts), width))), width)


class WrapTests(SynchronousTestCase):
    @given(texts, st.integers(2, 40))
    def test_no_piece_is_too_wide(self, text: str, width: int) -> None:
        self.assertTrue(all(cells(piece) <= width for piece in wrap(text, width)))

    @given(texts, st.integers(2, 40))
    def test_only_spaces_at_breaks_are_lost(self, text: str, width: int) -> None:
        self.assertEqual("".join(wrap(text, width)).replace(" ", ""), text.replace(" ", ""))

    def test_it_breaks_between_words(self) -> None:
        self.assertEqual(list(wrap("to be written before", 13)), ["to be written", "before"])

    def test_a_long_word_is_broken(self) -> None:
        self.assertEqual(list(wrap("abcdefghij", 4)), ["abcd", "efgh", "ij"])

    def test_wide_characters_take_two_columns(self) -> None:
        self.assertEqual(list(wrap("漢字漢字", 5)), ["漢字", "漢字"])


class FoldTests(SynchronousTestCase):
    @given(st.lists(texts, max_size=5), st.integers(8, 40))
    def test_only_long_words_are_too_wide_and_styles_stay(self, parts: list[str], width: int) -> None:
        line = tuple(Span(part, "bold" if i % 2 else "dim") for i, part in enumerate(parts))
        folded = list(fold(line, width))
        wide = [unstyled(part) for part in folded if cells(unstyled(part)) > width]
        self.assertTrue(all(" " not in part.strip(" ") for part in wide), wide)
        self.assertEqual("".join(map(unstyled, folded)).replace(" ", ""), unstyled(line).replace(" ", ""))
        for style in ("bold", "dim"):
            kept = "".join(span.text for part in folded for span in part if span.style == style)
            whole = "".join(span.text for span in line if span.style == style)
            self.assertEqual(kept.replace(" ", ""), whole.replace(" ", ""))

    def test_what_follows_is_indented_alike(self) -> None:
        self.assertEqual([unstyled(line) for line in fold((Span("  denied by rule"),), 10)], ["  denied", "  by rule"])

    def test_a_path_can_be_copied(self) -> None:
        line = (Span("  log  ", "dim"), Span("/home/me/a/long/path"), Span(" is it"))
        self.assertEqual([unstyled(part) for part in fold(line, 14)], ["  log ", "  /home/me/a/long/path", "  is it"])

    def test_a_blank_line_stays(self) -> None:
        self.assertEqual(list(fold((), 10)), [()])


class CutTests(SynchronousTestCase):
    @given(texts, st.integers(3, 40))
    def test_it_fits(self, text: str, width: int) -> None:
        for rest in ("…", "..."):
            self.assertLessEqual(cells(cut(text, width, rest)), width)

    def test_what_fits_is_left_alone(self) -> None:
        self.assertEqual(cut("path=notes.txt", 14), "path=notes.txt")

    def test_the_cut_is_seen(self) -> None:
        self.assertEqual(cut("path=notes.txt", 8), "path=no…")
        self.assertEqual(cut("path=notes.txt", 8, "..."), "path=...")
