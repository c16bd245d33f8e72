from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.text.quantities import UNITS, counted, noun, read_age, size_text


class AgeTests(SynchronousTestCase):
    @given(st.integers(0, 999_999), st.sampled_from(sorted(UNITS)))
    def test_a_number_with_a_unit(self, number: int, unit: str) -> None:
        self.assertEqual(read_age(f" {number}{unit}\n"), number * UNITS[unit])

    @given(
        st.text().filter(lambda text: not re.fullmatch(r"\s*[0-9]{1,6}[smhdw]\s*", text))
        | st.sampled_from(("", "7", "d", "-1d", "7 d", "1.5d", "7D", "\u0661d", "9999999d", "7d7h"))
    )
    def test_anything_else_is_refused(self, text: str) -> None:
        self.assertRaises(UsageError, read_age, text)


class SizeTextTests(SynchronousTestCase):
    def test_three_digits_at_most(self) -> None:
        sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 9_949: "9.9 kB", 9_960: "10 kB", 999_400: "999 kB"}
        sizes |= {999_600: "1.0 MB", 5 * 10**9: "5.0 GB", 10**13: "10000 GB"}
        self.assertEqual({size: size_text(size) for size in sizes}, sizes)


class CountedTests(SynchronousTestCase):
    def test_one_and_several(self) -> None:
        shown = [counted(0, "file"), counted(1, "file"), counted(1200, "directory", "directories")]
        self.assertEqual(shown, ["0 files", "1 file", "1,200 directories"])
        self.assertEqual([noun(1, "is", "are"), noun(2, "is", "are"), noun(2, "tool")], ["is", "are", "tools"])
