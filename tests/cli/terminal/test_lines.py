from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.terminal.lines import ASCII, UNICODE, cells, cut, fold, glyphs_for, representable, wrap
from ironcurtain.text.columns import Span, plain

texts = st.text(st.sampled_from("ab  漢é\u0301x-"), max_size=80)


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
        wide = [plain(part) for part in folded if cells(plain(part)) > width]
        self.assertTrue(all(" " not in part.strip(" ") for part in wide), wide)
        self.assertEqual("".join(map(plain, folded)).replace(" ", ""), plain(line).replace(" ", ""))
        for style in ("bold", "dim"):
            kept = "".join(span.text for part in folded for span in part if span.style == style)
            whole = "".join(span.text for span in line if span.style == style)
            self.assertEqual(kept.replace(" ", ""), whole.replace(" ", ""))

    def test_what_follows_is_indented_alike(self) -> None:
        self.assertEqual([plain(line) for line in fold((Span("  denied by rule"),), 10)], ["  denied", "  by rule"])

    def test_a_path_can_be_copied(self) -> None:
        line = (Span("  log  ", "dim"), Span("/home/me/a/long/path"), Span(" is it"))
        self.assertEqual([plain(part) for part in fold(line, 14)], ["  log ", "  /home/me/a/long/path", "  is it"])

    def test_a_blank_line_stays(self) -> None:
        self.assertEqual(list(fold((), 10)), [()])


class CutTests(SynchronousTestCase):
    @given(texts, st.integers(3, 40))
    def test_it_fits(self, text: str, width: int) -> None:
        for glyphs in (UNICODE, ASCII):
            self.assertLessEqual(cells(cut(text, width, glyphs)), width)

    def test_what_fits_is_left_alone(self) -> None:
        self.assertEqual(cut("path=notes.txt", 14), "path=notes.txt")

    def test_the_cut_is_seen(self) -> None:
        self.assertEqual(cut("path=notes.txt", 8), "path=no…")
        self.assertEqual(cut("path=notes.txt", 8, ASCII), "path=...")


class EncodingTests(SynchronousTestCase):
    def test_signs_follow_the_encoding(self) -> None:
        self.assertIs(glyphs_for("utf-8"), UNICODE)
        self.assertIs(glyphs_for("ascii"), ASCII)
        self.assertIs(glyphs_for("iso-8859-1"), ASCII)
        self.assertIs(glyphs_for("no such encoding"), ASCII)

    def test_ascii_signs_are_ascii(self) -> None:
        self.assertTrue(all(getattr(ASCII, name).isascii() for name in ASCII.__slots__))

    def test_what_an_encoding_lacks_is_escaped_not_lost(self) -> None:
        self.assertEqual(representable("naïve…", "ascii"), "na\\xefve...")
        self.assertEqual(representable("naïve…", "utf-8"), "naïve…")

    @given(st.text())
    def test_the_result_can_always_be_written(self, text: str) -> None:
        for encoding in ("ascii", "utf-8", "iso-8859-1"):
            representable(text, encoding).encode(encoding)
