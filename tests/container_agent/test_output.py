from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.output import LINE_LIMIT, LINES_A_SECOND, Lines, Tail


class TailTests(SynchronousTestCase):
    @given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
    def test_the_end_is_kept_in_any_slicing(self, pieces: list[bytes], limit: int) -> None:
        tail = Tail(limit)
        for piece in pieces:
            tail.feed(piece)
        whole = b"".join(pieces)
        self.assertEqual((tail.kept, tail.size), (whole[-limit:], len(whole)))


class LinesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.told: list[str] = []
        self.lines = Lines(self.told.append, self.clock.seconds)

    def test_lines_in_any_slicing_and_the_last_without_an_end(self) -> None:
        for piece in (b"on", b"e\ntwo\n\n", b"thr\xff", b"ee"):
            self.lines.feed(piece)
        self.assertEqual(self.told, ["one", "two"])
        self.lines.end()
        self.assertEqual(self.told, ["one", "two", "thr\ufffdee"])

    def test_a_flood_is_counted(self) -> None:
        self.lines.feed(b"x\n" * (LINES_A_SECOND + 7))
        self.assertEqual(len(self.told), LINES_A_SECOND)
        self.clock.advance(1)
        self.lines.feed(b"y\n")
        self.assertEqual(self.told[-2:], ["(7 more lines were left out)", "y"])

    def test_long_lines_are_cut(self) -> None:
        self.lines.feed(b"x" * (LINE_LIMIT + 1) + b"\n")
        self.lines.feed(b"y" * (5 * LINE_LIMIT) + b"\n")
        self.assertEqual(self.told, ["x" * LINE_LIMIT, "(a line that is too long)"])
