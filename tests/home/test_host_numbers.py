"""Tests for numbers of other hosts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.host_numbers import HostNumber, read_number

HOSTS = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NUMBERS = st.integers(0, 10**15 - 1)


class HostNumberTests(SynchronousTestCase):
    @given(HOSTS, NUMBERS)
    def test_its_text_is_read_as_the_same_number(self, host: str, number: int) -> None:
        made = HostNumber(host, number)
        read = read_number(str(made))
        self.assertEqual((read, str(read)), (made, f"{host}/{number}"))
        self.assertEqual((f"{made}", f"{made:>40}".strip(), made.there), (str(made), str(made), number))

    @given(HOSTS, HOSTS, NUMBERS, NUMBERS)
    def test_no_two_are_equal(self, host: str, other: str, one: int, two: int) -> None:
        self.assertEqual(HostNumber(host, one) == HostNumber(other, two), (host, one) == (other, two))
        self.assertNotEqual(HostNumber(host, one), two)

    def test_texts_that_are_no_numbers(self) -> None:
        for text in ("", "x", "-1", "1.0", "/1", "a/", "a/b", "A/1", "a/1/2", "1" * 16, "٣", "a/1\n"):
            self.assertIsNone(read_number(text), text)
