from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.watchers.lines import LINE_LIMIT, SHOWN_LIMIT, MatchingLines


def found(pattern: str, *slices: bytes) -> list[str]:
    """:returns: the lines that match."""
    lines = MatchingLines(pattern)
    events = [event for data in slices for event in lines.feed(data)]
    return [event.data["line"] for event in [*events, *lines.end()]]


class MatchingLinesTests(SynchronousTestCase):
    @given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
    def test_any_slicing_gives_the_same_lines(self, pieces: list[bytes], size: int) -> None:
        stream = b"\n".join(pieces)
        slices = [stream[i : i + size] for i in range(0, len(stream), size)]
        self.assertEqual(found("", *slices), found("", stream))

    def test_pattern_is_a_part_of_the_line(self) -> None:
        stream = b"fine\nkernel: OOM killed 12\nerror on disk\n\n"
        self.assertEqual(found("OOM", stream), ["kernel: OOM killed 12"])
        self.assertEqual(found("err*disk", stream), ["error on disk"])
        self.assertEqual(len(found("", stream)), 3)

    def test_hostile_lines_are_escaped_and_bounded(self) -> None:
        (line,) = found("x", b"x\x1b]0;title\x07\r\xff\n")
        self.assertEqual(line, "x\\x1b]0;title\\x07\\r\\\\xff")
        self.assertLess(len(found("", b"y" * 10**6)[0]), SHOWN_LIMIT + 50)

    def test_long_line_is_one_event_and_the_next_one_follows(self) -> None:
        lines = found("", b"y" * (3 * LINE_LIMIT), b"z" * LINE_LIMIT + b"\nnext\n")
        self.assertEqual((len(lines), lines[-1]), (2, "next"))

    def test_many_stars_take_no_time(self) -> None:
        self.assertEqual(found("*a" * 200 + "b", b"a" * LINE_LIMIT), [])
