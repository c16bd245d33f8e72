"""Letters that look like others are marked, and words in other languages are not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.display import has_hidden_text, json_line, one_line, paragraphs
from ironcurtain.text.lookalikes import lookalikes

POSING = (
    ("~/.b\u0430shrc", "~/.b\\u0430shrc"),
    ("\u0435tc/passwd", "\\u0435tc/passwd"),
    ("~/.\u0455\u0455\u04bb/id", "~/.\\u0455\\u0455\\u04bb/id"),
    ("~/.ss\uff0fh", "~/.ss\\uff0fh"),
    ("a\u2215b", "a\\u2215b"),
    ("g\u0456t push", "g\\u0456t push"),
    ("G\u039fOGLE.com", "G\\u039fOGLE.com"),
    ("\u13da\u13bb key", "\\u13da\\u13bb key"),
    ("\U0001d41bash", "\\U0001d41bash"),
    ("f\u0131le", "f\\u0131le"),
    (
        "\u0437\u0430\u043c\u0435\u0442\u043a\u0430/.b\u0430shrc",
        "\u0437\u0430\u043c\u0435\u0442\u043a\u0430/.b\\u0430shrc",
    ),
)
HONEST = (
    "\u0437\u0430\u043c\u0435\u0442\u043a\u0438/main.py",
    "\u0420\u043e\u0441\u0430 \u0438 \u0441\u0435\u0440\u0430 \u0432 git",
    "git \u0438 npm",
    "\u0441\u0435\u0440\u0430",
    "\u0395\u03bb\u03bb\u03ac\u03b4\u03b1/readme",
    "10 k\u03a9, 5 \u03bcs, 5 \u00b5m",
    "caf\u00e9/na\u00efve/Stra\u00dfe",
    "\u6587\u4ef6/file.txt\uff0c\u65e5\u672c\u8a9eOK",
    "\u201cquoted\u201d \u2013 and\u2026 \u00bb",
)


class LookalikeTests(SynchronousTestCase):
    def test_posing_letters_are_escaped_everywhere(self) -> None:
        for text, shown in POSING:
            self.assertEqual(one_line(text), shown)
            self.assertEqual(paragraphs(text), shown)
            self.assertEqual(json_line(text), f'"{shown}"')
            self.assertTrue(has_hidden_text(text), shown)

    def test_words_of_other_languages_are_not(self) -> None:
        for text in HONEST:
            self.assertEqual(lookalikes(text), frozenset(), ascii(text))
            self.assertEqual(one_line(text), text)

    def test_the_rest_of_a_word_stays_readable(self) -> None:
        self.assertEqual(
            one_line("\u043f\u0440\u0438\u0432\u0435\u0442 b\u0430sh"),
            "\u043f\u0440\u0438\u0432\u0435\u0442 b\\u0430sh",
        )

    @given(st.text(st.sampled_from("ab/. \u0430\u0436\u03bf\u2215\u13da\u00e9"), max_size=20))
    def test_positions_are_those_of_other_characters_than_ascii(self, text: str) -> None:
        for number in lookalikes(text):
            self.assertFalse(text[number].isascii())
        self.assertEqual(lookalikes(one_line(text).encode("ascii", "replace").decode()), frozenset())
