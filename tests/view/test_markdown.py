"""Markdown as lines of a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.columns import unstyled
from ironcurtain.view.look import Look
from ironcurtain.view.markdown import Markdown

LOOK = Look()


def shown(*lines: str) -> list[list[tuple[str, str]]]:
    markdown = Markdown()
    return [[(span.text, span.style) for span in markdown.line(line, LOOK)[0]] for line in lines]


class MarkdownTests(SynchronousTestCase):
    def test_headings_items_and_emphasis(self) -> None:
        self.assertEqual(
            shown("## Result of `ls`", "- **two** files", "  * run `ls -l`", "plain __strong__ * 3 * 4"),
            [
                [("Result of ", "title"), ("ls", "title")],
                [("• ", ""), ("two", "bold"), (" files", "")],
                [("  • ", ""), ("run ", ""), ("ls -l", "code")],
                [("plain ", ""), ("strong", "bold"), (" * 3 * 4", "")],
            ],
        )

    def test_code_is_shown_as_it_is(self) -> None:
        lines = ("```sh", "# **x** `y`", "  - z", "```", "**x**")
        self.assertEqual(
            shown(*lines),
            [
                [("```sh", "dim")],
                [("# **x** `y`", "code")],
                [("  - z", "code")],
                [("```", "dim")],
                [("x", "bold")],
            ],
        )

    def test_what_is_no_markdown_stays(self) -> None:
        for text in ("#hash", "-x", "a ** b ** c", "2 * 3 * 4", "`", "**", "snake__case", "```", "--- a/file"):
            self.assertEqual([unstyled(Markdown().line(text, LOOK)[0])], [text])

    def test_later_rows_begin_below_the_words(self) -> None:
        self.assertEqual([Markdown().line(text, LOOK)[1] for text in ("- a", "   b", "  - c", "# d")], [2, 3, 4, 0])

    def test_control_characters_are_escaped(self) -> None:
        self.assertEqual(shown("**a\x1b[2J** `\x9b1m`")[0], [("a\\x1b[2J", "bold"), (" ", ""), ("\\x9b1m", "code")])

    @given(st.lists(st.text(st.sampled_from("`*_#-~ ab\x1b"), max_size=40), max_size=6))
    def test_no_letter_is_lost(self, lines: list[str]) -> None:
        markdown = Markdown()
        for line in lines:
            found = unstyled(markdown.line(line, LOOK)[0]).replace("\\x1b", "\x1b")
            self.assertEqual([c for c in found if c in "ab\x1b"], [c for c in line if c in "ab\x1b"])
