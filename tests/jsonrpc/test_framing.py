"""Cutting a stream into lines."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.jsonrpc.framing import TOO_LONG, Framer, TooLong

LIMIT = 20


def feed_all(stream: bytes, size: int, limit: int = LIMIT) -> list[bytes | TooLong]:
    """:returns: what a framer makes of a stream that comes in slices of one size."""
    framer = Framer(limit)
    return [line for i in range(0, len(stream), size) for line in framer.feed(stream[i : i + size])]


def expected(stream: bytes, limit: int = LIMIT) -> list[bytes | TooLong]:
    """:returns: the same by the definition."""
    *whole, rest = stream.split(b"\n")
    lines = [line.removesuffix(b"\r") for line in whole]
    found: list[bytes | TooLong] = [TOO_LONG if len(line) > limit else line for line in lines if line]
    return [*found, TOO_LONG] if len(rest) > limit + 1 else found


class FramerTests(SynchronousTestCase):
    """Lines of any length, in any slices."""

    @given(
        st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"x" * 7, b"y" * LIMIT, b"z" * (LIMIT + 1)])),
        st.integers(1, 50),
    )
    def test_any_slicing_gives_the_same_lines(self, pieces: list[bytes], size: int) -> None:
        stream = b"".join(pieces)
        self.assertEqual(feed_all(stream, size), expected(stream))

    def test_the_limit_does_not_count_the_line_end(self) -> None:
        for end in (b"\n", b"\r\n"):
            self.assertEqual(Framer(3).feed(b"abc" + end), [b"abc"])
            self.assertEqual(Framer(3).feed(b"abcd" + end), [TOO_LONG])

    def test_a_line_that_is_too_long_is_not_kept(self) -> None:
        framer = Framer(1000)
        reports = [line for _ in range(1000) for line in framer.feed(b"x" * 1000)]
        self.assertEqual(reports, [TOO_LONG])
        self.assertEqual((framer._pieces, framer._joined), ([], []))
        self.assertTrue(framer.pending)
        self.assertEqual(framer.feed(b"x\nnext\n"), [b"next"])
        self.assertFalse(framer.pending)

    def test_small_pieces_cost_no_more_than_their_bytes(self) -> None:
        framer = Framer(200_000)
        for number in range(50_000):
            framer.feed(b"%04d" % (number % 10_000))
        held = sum(map(sys.getsizeof, (*framer._pieces, *framer._joined)))
        self.assertLess(held, 300_000)
        (line,) = framer.feed(b"\n")
        self.assertEqual(line, b"".join(b"%04d" % (number % 10_000) for number in range(50_000)))

    def test_an_unfinished_line_is_pending(self) -> None:
        framer = Framer(LIMIT)
        self.assertFalse(framer.pending)
        self.assertEqual(framer.feed(b"abc"), [])
        self.assertTrue(framer.pending)
