from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.display import ago, elapsed, has_hidden_text, json_line, left, one_line, paragraphs, shorten, took
from tests.text.visible import invisible

DECEIVING = (
    "\x1b[2J",
    "\x9b31m",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\U000e0041",
    "\u2028",
    "\ud800",
    "\x7f",
    "\ue000",
    "\u3164",
    "\ufe0f",
)
"""Escape sequences, bidirectional controls, zero-width and tag characters, half a surrogate pair, private use."""


def harmless(text: str) -> bool:
    return all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for c in text)


class DisplayTests(SynchronousTestCase):
    def test_what_deceives_is_made_visible(self) -> None:
        for text in DECEIVING:
            self.assertTrue(has_hidden_text(text))
            for shown in (one_line(f"a{text}b"), paragraphs(f"a{text}b")):
                self.assertTrue(harmless(shown), ascii(shown))
                self.assertIn("\\", shown)

    def test_ordinary_text_stays(self) -> None:
        for text in ("plain", "größer", "日本語", "é", "a 'b' \"c\"", "🙂"):
            self.assertEqual((one_line(text), paragraphs(text)), (text, text))
            self.assertFalse(has_hidden_text(text))
        self.assertEqual(paragraphs("a\tb\r\nc\n"), "a\tb\nc\n")

    def test_one_line_can_be_read_back(self) -> None:
        self.assertEqual(one_line("a\nb\tc\\n\r"), "a\\nb\\tc\\\\n\\r")

    @given(st.text(st.characters(exclude_categories=())))
    def test_any_text_becomes_harmless(self, text: str) -> None:
        self.assertTrue(harmless(one_line(text)))
        self.assertTrue(harmless(paragraphs(text).replace("\n", "").replace("\t", "")))
        self.assertTrue(harmless(shorten(text, 20)))
        self.assertEqual(invisible(paragraphs(text)), [])

    @given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
    def test_different_texts_look_different(self, one: str, other: str) -> None:
        self.assertEqual(one_line(one) == one_line(other), one == other)

    @given(st.text(st.characters(exclude_categories=())), st.integers(1, 30))
    def test_shortened(self, text: str, limit: int) -> None:
        self.assertLessEqual(len(shorten(text, limit)), limit)

    @given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)), st.integers(0, 30))
    def test_plain_text_is_only_cut(self, text: str, limit: int) -> None:
        self.assertEqual(one_line(text), text.replace("\\", "\\\\"))
        self.assertEqual(json_line(text), json.dumps(text))
        for shown, whole in (
            (one_line(text.replace("\\", "/"), limit), text.replace("\\", "/")),
            (json_line(text, limit), json.dumps(text)),
        ):
            rest = len(whole) - limit
            self.assertEqual(shown, f"{whole[:limit]}… (+{rest} characters)" if rest > 0 else whole)

    def test_what_is_left_out_is_counted(self) -> None:
        self.assertEqual(one_line("abcdef", 4), "abcd… (+2 characters)")
        self.assertEqual(one_line("abcd", 4), "abcd")

    def test_a_limit_holds_for_what_is_shown(self) -> None:
        self.assertLess(len(one_line("\u200b" * 1000, 100)), 130)


class TimeTests(SynchronousTestCase):
    """Times for people."""

    def test_what_is_left(self) -> None:
        self.assertEqual([left(299.9), left(60), left(0.5), left(-3)], ["4:59", "1:00", "0:00", "0:00"])

    def test_how_old(self) -> None:
        self.assertEqual([ago(3), ago(119), ago(7200), ago(90000), ago(-1)], ["3 s", "1 min", "2 h", "1 d", "0 s"])


class DurationTests(SynchronousTestCase):
    def test_durations_take_the_unit_that_fits(self) -> None:
        self.assertEqual([took(ms) for ms in (3, 2500, 185_000)], ["3 ms", "2.5 s", "3:05 min"])
        self.assertEqual([elapsed(s) for s in (-1, 12.9, 185)], ["0 s", "12 s", "3:05"])
