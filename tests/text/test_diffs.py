"""Changes of texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text import differences
from ironcurtain.text.diffs import DIFF_LIMIT, DIFFED, bounded, unified

NO_END = "\\ No newline at end of file\n"


class DiffTests(SynchronousTestCase):
    def test_a_change_is_a_unified_diff(self) -> None:
        self.assertEqual(unified("f", "a\nb\n", "a\nc"), f"--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n{NO_END}")
        self.assertEqual(unified("f", "a", "a"), "")

    def test_the_end_of_the_last_line_is_a_change(self) -> None:
        self.assertEqual(unified("f", "a\n", "a"), f"--- f\n+++ f\n@@ -1 +1 @@\n-a\n+a\n{NO_END}")
        self.assertEqual(unified("f", "a", "a\n"), f"--- f\n+++ f\n@@ -1 +1 @@\n-a\n{NO_END}+a\n")

    @given(st.text(max_size=200), st.text(max_size=200))
    def test_nothing_but_a_line_feed_ends_a_line(self, before: str, after: str) -> None:
        ends = differences.lines_of(before) + differences.lines_of(after)
        signs = ("+", "-", " ")
        shown = [line[1:] for line in unified("f", before, after).split("\n")[3:] if line.startswith(signs)]
        self.assertLessEqual({*shown}, {line.removesuffix("\n") for line in ends})

    def test_path_is_no_line_of_the_change(self) -> None:
        hostile = "a\n+safe = True\r\n@@ -1 +1 @@"
        for after in ("b\n", "x" * (DIFFED + 1)):
            head, _, changes = unified(hostile, "", after).partition("\n@@ ")
            escaped = "a\\n+safe = True\\r\\n@@ -1 +1 @@"
            self.assertEqual(head, f"--- {escaped}\n+++ {escaped}")
            self.assertNotIn("safe", changes)

    def test_texts_that_take_too_long_to_compare_are_counted(self) -> None:
        self.assertIn(f"{DIFFED + 1} characters became 0", unified("f", "x" * (DIFFED + 1), ""))

    def test_a_long_diff_says_how_much_is_left_out(self) -> None:
        shown = bounded("+x\n" * DIFF_LIMIT)
        self.assertLess(len(shown), DIFF_LIMIT + 50)
        self.assertIn("more lines)", shown)

    @given(st.text(max_size=200), st.text(max_size=200))
    def test_each_line_has_its_sign(self, before: str, after: str) -> None:
        lines = unified("f", before, after).split("\n")
        self.assertTrue(all(line == "" or line[0] in "+- @\\" for line in lines), lines)
