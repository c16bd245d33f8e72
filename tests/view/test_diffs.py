"""Changes of files as lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.columns import unstyled
from ironcurtain.view.arguments import diff_lines
from tests.view.strategies import harmful


class DiffTests(SynchronousTestCase):
    def test_lines_have_the_colour_of_their_sign(self) -> None:
        lines = diff_lines("--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new\n same\n")
        self.assertEqual([line[0].style for line in lines], ["dim", "dim", "old", "new", "dim"])
        self.assertEqual([unstyled(line) for line in lines], ["+++ f", "@@ -1 +1 @@", "-old", "+new", " same"])

    def test_a_deleted_line_that_looks_like_a_name_is_shown(self) -> None:
        lines = diff_lines("--- f\n+++ f\n@@ -1,2 +1 @@\n--- a comment\n keep\n")
        self.assertEqual([unstyled(line) for line in lines][2:], ["--- a comment", " keep"])

    def test_what_ends_no_line_is_escaped_within_it(self) -> None:
        lines = diff_lines("--- f\n+++ f\n@@ -0,0 +1 @@\n+# a\rb\u2028c\x0bd\n")
        self.assertEqual(unstyled(lines[-1]), "+# a\\x0db\\u2028c\\x0bd")

    def test_both_names_of_a_renamed_file_are_shown(self) -> None:
        self.assertEqual(unstyled(diff_lines("--- a\n+++ b\n")[0]), "--- a")

    @given(st.text(), st.integers(0, 5))
    def test_no_character_reaches_the_terminal_unescaped(self, text: str, most: int) -> None:
        lines = diff_lines(text, most)
        self.assertLessEqual(len(lines), most + 1)
        self.assertEqual([harmful(unstyled(line)) for line in lines if harmful(unstyled(line))], [])
