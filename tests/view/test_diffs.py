"""Changes of files as lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.columns import unstyled
from ironcurtain.view.diffs import diff_lines
from tests.view.strategies import harmful


class DiffTests(SynchronousTestCase):
    def test_lines_have_the_colour_of_their_sign(self) -> None:
        lines = diff_lines("--- f\n+++ f\n@@ -1 +1 @@\n-old\n+new\n same\n")
        self.assertEqual([line[0].style for line in lines], ["dim", "dim", "old", "new", "dim"])
        self.assertEqual([unstyled(line) for line in lines], ["+++ f", "@@ -1 +1 @@", "-old", "+new", " same"])

    def test_both_names_of_a_renamed_file_are_shown(self) -> None:
        self.assertEqual(unstyled(diff_lines("--- a\n+++ b\n")[0]), "--- a")

    @given(st.text(), st.integers(0, 5))
    def test_no_character_reaches_the_terminal_unescaped(self, text: str, most: int) -> None:
        lines = diff_lines(text, most)
        self.assertLessEqual(len(lines), most + 1)
        self.assertEqual([harmful(unstyled(line)) for line in lines if harmful(unstyled(line))], [])
