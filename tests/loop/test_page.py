"""The text of a terminal, held against a whole emulator."""

from __future__ import annotations

import re
import unittest
from collections.abc import Sequence
from importlib.util import find_spec

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.page import Page
from ironcurtain.loop.reader import OutputReader, only_lines
from ironcurtain.loop.rows import Line

TEXTS = (b"a", b"word ", b"LOOP_COMPLETE", b"x" * 15, "é".encode(), b"\r\n", b"\n", b"\r", b"\b", b"\t")
WIDE = ("中".encode(),)
MOVES = (
    *(b"\x1b[A", b"\x1b[3B", b"\x1b[5C", b"\x1b[2D", b"\x1b[H", b"\x1b[3;4H", b"\x1b[G", b"\x1b[4d", b"\x1b[2I"),
    *(b"\x1bD", b"\x1bM", b"\x1bE", b"\x1b[1\r2C", b"\x1b[31m", b"\x1b]0;t\x07"),
    *(b"\x1b[E", b"\x1b[2F", b"\x1b[3b", b"\x1bPx\x1b\\", b"\x1b[>4;1m", b"\x1b[?25l", b"\x1b[99;99H"),
)
EDITS = (
    *(b"\x1b7", b"\x1b8"),
    *(b"\x1b[J", b"\x1b[1J", b"\x1b[2J", b"\x1b[K", b"\x1b[1K", b"\x1b[2K", b"\x1b[2L", b"\x1b[M", b"\x1b[3P"),
    *(b"\x1b[4@", b"\x1b[2X", b"\x1b[S", b"\x1b[T", b"\x1b[2;4r", b"\x1b[r"),
    *(b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?7l", b"\x1b[?7h"),
)


class Reading:
    """Output that was read, and what became of it."""

    def __init__(self, columns: int = 12, rows: int = 5) -> None:
        self.off: list[Line] = []
        self.changes = 0
        self.page = Page(columns, rows, (), self.off.extend, self._changing)
        self.reader = OutputReader(self.page)

    def _changing(self) -> None:
        self.changes += 1

    def feed(self, *pieces: bytes) -> Reading:
        for piece in pieces:
            self.reader.feed(piece)
        return self

    @property
    def lines(self) -> list[str]:
        return [line.text for line in (*self.off, *self.page.lines())]

    @property
    def text(self) -> str:
        """What is left where a terminal would show it."""
        shown = self.page.lines() if self.page.alternates else (*self.off, *self.page.lines())
        return "\n".join(line.text for line in shown)


class EmulatorTests(SynchronousTestCase):
    """The same text as libghostty has."""

    def setUp(self) -> None:
        if find_spec("pyghostty") is None:
            raise unittest.SkipTest("needs pyghostty")

    def emulated(self, pieces: Sequence[bytes]) -> str:
        from ironcurtain.terminal.ghostty import Emulator

        emulator = Emulator(12, 5)
        for piece in pieces:
            emulator.feed(piece)
        return "\n".join(line.rstrip() for line in str(emulator.contents()).split("\n"))

    @given(st.lists(st.sampled_from(TEXTS + MOVES), max_size=30))
    def test_text_and_moves(self, pieces: list[bytes]) -> None:
        self.assertEqual(Reading().feed(*pieces).text.strip(), self.emulated(pieces).strip())

    @given(st.lists(st.sampled_from(TEXTS + WIDE + MOVES + EDITS), max_size=30))
    def test_edits_where_lines_that_wrapped_may_be_told_apart(self, pieces: list[bytes]) -> None:
        ours, theirs = Reading().feed(*pieces).text, self.emulated(pieces)
        self.assertEqual("".join(ours.split()), "".join(theirs.split()))


class PageTests(SynchronousTestCase):
    """What no emulator says."""

    @given(st.lists(st.sampled_from(TEXTS + MOVES + EDITS), max_size=30), st.integers(1, 7))
    def test_any_slicing_gives_the_same(self, pieces: list[bytes], size: int) -> None:
        data = b"".join(pieces)
        sliced = [data[at : at + size] for at in range(0, len(data), size)]
        self.assertEqual(Reading().feed(*sliced).lines, Reading().feed(data).lines)

    @given(
        st.lists(
            st.sampled_from((b"\r\n", b"short\r\n", b"y" * 30 + b"\r\n", "é中\r\n".encode(), b"\x1b[31m")), min_size=600
        )
    )
    def test_many_lines_at_once_are_the_same_as_one_by_one(self, pieces: list[bytes]) -> None:
        at_once, one_by_one = Reading().feed(b"".join(pieces)), Reading().feed(*pieces)
        joined = "\n".join(at_once.lines)
        self.assertEqual(joined, "\n".join(one_by_one.lines))
        self.assertEqual((at_once.page.x, at_once.page.y), (one_by_one.page.x, one_by_one.page.y))

    @given(
        st.lists(st.sampled_from((*TEXTS, *WIDE, *MOVES, *EDITS, b"<ev", b"ent", b"LOOP_", b"COMPLETE")), max_size=40)
    )
    def test_it_never_overlooks_what_is_sought(self, pieces: list[bytes]) -> None:
        sought = ("LOOP_COMPLETE", "<event")
        page = Page(12, 5, sought, lambda lines: None, lambda: None)
        reader = OutputReader(page)
        for piece in pieces:
            reader.feed(piece)
            shown = "".join(row.text for row in page._page)
            self.assertEqual(page.promising, any(each in shown for each in sought))

    @given(
        st.lists(st.sampled_from((b"x", "é".encode(), b"\r", b"\n", b"\r\n", b"\x1b[1;32m", b"\x1b[K", b"\t", b"\x7f")))
    )
    def test_lines_are_told_from_all_else(self, pieces: list[bytes]) -> None:
        data = b"".join(pieces)
        still = re.sub(rb"\x1b\[[\d;:]*m", b"", data)
        self.assertEqual(only_lines(data), bool(re.fullmatch(rb"(?:[^\x00-\x1f\x7f]|\r?\n)*\r?", still)))

    def test_it_says_before_text_vanishes(self) -> None:
        for change in (
            b"\x1b[2J",
            b"\x1b[2K",
            b"\rx",
            b"\x1b[M",
            b"\x1b[1;1H\x1b[L",
            b"\x1b[?1049h",
            b"\x1bc",
            b"\r\x1b[P",
        ):
            reading = Reading().feed(b"text")
            self.assertEqual(reading.changes, 0)
            reading.feed(change)
            self.assertEqual(reading.changes, 1, change)

    def test_it_says_nothing_where_nothing_vanishes(self) -> None:
        reading = Reading().feed(b"text\r\n", b"more\x1b[3;3Hthere\x1b[1;1Htext", b"\x1b[5;1H\x1b[K\x1b[J\n\n\n")
        self.assertEqual(reading.changes, 0)

    def test_a_wrapped_line_is_one_with_the_number_of_its_first_row(self) -> None:
        reading = Reading().feed(b"a\r\n" + b"x" * 30 + b"\r\nb" + b"\r\n" * 9)
        self.assertEqual(
            [tuple(line) for line in reading.off[:3]], [(0, "a", False), (1, "x" * 30, False), (4, "b", False)]
        )

    def test_a_smaller_and_a_larger_size(self) -> None:
        reading = Reading().feed(b"one\r\ntwo\r\nthree three\r\nfour\r\nfive")
        reading.page.resize(6, 3)
        self.assertEqual(reading.lines, ["one", "two", "three", "four", "five"])
        reading.page.resize(20, 8)
        self.assertEqual([line for line in reading.lines if line], ["one", "two", "three", "four", "five"])
        reading.feed(b"!")
        self.assertIn("five!", reading.lines)
