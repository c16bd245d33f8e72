"""Changes of texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.diffs import DIFF_LIMIT, DIFFED, bounded, unified


class DiffTests(SynchronousTestCase):
    def test_a_change_is_a_unified_diff(self) -> None:
        self.assertEqual(unified("f", "a\nb\n", "a\nc"), "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
        self.assertEqual(unified("f", "a", "a"), "")

    def test_texts_that_take_too_long_to_compare_are_counted(self) -> None:
        self.assertIn(f"{DIFFED + 1} characters became 0", unified("f", "x" * (DIFFED + 1), ""))

    def test_a_long_diff_says_how_much_is_left_out(self) -> None:
        shown = bounded("+x\n" * DIFF_LIMIT)
        self.assertLess(len(shown), DIFF_LIMIT + 50)
        self.assertIn("more lines)", shown)

    @given(st.text(max_size=200), st.text(max_size=200))
    def test_each_line_has_its_sign(self, before: str, after: str) -> None:
        lines = unified("f", before, after).split("\n")
        self.assertTrue(all(line == "" or line[0] in "+- @" for line in lines), lines)
