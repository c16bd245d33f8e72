"""The screen model that only remembers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.screen import PIECE, RingScreen
from ironcurtain.terminal.sequences import CLEAR, RESTORE

QUERIES = (
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[>0c",
    b"\x1b[=c",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[18t",
    b"\x1b[?2026$p",
    b"\x1b[4$p",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?u",
    b"\x1b[?4m",
    b"\x1b[?1;1;0S",
    b"\x1bZ",
    b"\x05",
    b"\x1b]4;1;?\x07",
    b"\x1b]10;?\x1b\\",
    b"\x1b]11;?\x07",
    b"\x1b]52;c;?\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
)
"""What terminals answer."""

KEPT = (
    b"text",
    b"\x1b[31m",
    b"\x1b[5S",
    b"\x1b[u",
    b"\x1b[?25l",
    b"\x1b]0;title\x07",
    b"\x1b]8;;http://x\x1b\\",
    b"\r\n",
    b"\x1b[2 q",
)


def drawn(*output: bytes, limit: int = 1000) -> bytes:
    ring = RingScreen(limit)
    for data in output:
        ring.feed(data)
    (redraw,) = redraws(ring)
    assert redraw.startswith(RESTORE + CLEAR)
    return redraw.removeprefix(RESTORE + CLEAR)


def redraws(ring: RingScreen) -> list[bytes]:
    found: list[bytes] = []
    ring.redraw(80, 24, True, found.append)
    return found


def text(ring: RingScreen) -> str:
    found: list[str] = []
    ring.text(found.append)
    return "".join(found)


class RingTests(SynchronousTestCase):
    """What is shown again."""

    def test_output_is_shown_again(self) -> None:
        self.assertEqual(drawn(*KEPT), b"".join(KEPT))

    def test_no_question_is_asked_again(self) -> None:
        for query in QUERIES:
            self.assertEqual(drawn(b"a" + query + b"b"), b"ab", query)

    def test_nothing_rings_or_notifies_again(self) -> None:
        self.assertEqual(drawn(b"a\x07\x1b]9;hello\x07\x1b]777;notify;a;b\x1b\\\x1b]0;t\x07b"), b"a\x1b]0;t\x07b")

    def test_a_sequence_under_way_comes_last(self) -> None:
        self.assertEqual(drawn(b"a\x1b[3"), b"a\x1b[3")

    def test_only_the_last_output_is_kept_from_a_whole_line_on(self) -> None:
        self.assertEqual(drawn(b"1234\n", b"5678\n", b"abcd\n", limit=12), b"5678\nabcd\n")
        self.assertEqual(drawn(*(b"%d\n" % (i % 10) for i in range(1000)), limit=12), b"5\n6\n7\n8\n9\n")
        self.assertEqual(drawn(b"x" * 50 + b"\nlast line\n", limit=12), b"last line\n")

    @given(st.lists(st.tuples(st.integers(1, 30_000), st.booleans()), max_size=20), st.integers(1, 40_000))
    def test_what_is_kept_is_the_end_of_it(self, sizes: list[tuple[int, bool]], limit: int) -> None:
        ring, whole = RingScreen(limit), b""
        for number, (size, small) in enumerate(sizes):
            piece = (b"%d\n" % number * size)[: size // 100 + 1 if small else size]
            ring.feed(piece)
            whole += piece
        last = whole[-limit:]
        self.assertEqual(ring.kept(), whole if len(whole) <= limit else last[last.find(b"\n") + 1 :])

    @given(st.lists(st.integers(1, 20_000)), st.integers(1, 40_000))
    def test_it_stays_within_its_limit(self, sizes: list[int], limit: int) -> None:
        ring = RingScreen(limit)
        for size in sizes:
            ring.feed(b"x" * size)
            self.assertLessEqual(sum(map(len, ring._pieces)), 2 * limit + 2 * PIECE)
        self.assertLessEqual(len(text(ring)), limit)

    def test_between(self) -> None:
        ring = RingScreen()
        for data, between in ((b"abc", True), (b"\x1b[3", False), (b"1m", True), (b"\x1b]0;x", False), (b"\x07", True)):
            ring.feed(data)
            self.assertEqual(ring.between, between, data)

    def test_text(self) -> None:
        ring = RingScreen()
        ring.feed(b"LOOP\x1b[1m_COMPLETE\r\n")
        self.assertEqual(text(ring), "LOOP_COMPLETE\n")

    @given(st.lists(st.one_of(st.sampled_from([*QUERIES, *KEPT]), st.binary(max_size=5))), st.integers(0, 10))
    def test_no_cut_lets_a_question_through(self, output: list[bytes], cut: int) -> None:
        """A question that is only begun is the last thing that is drawn, and not whole."""
        data = b"".join(output)
        again = RingScreen()
        again.feed(drawn(data[: len(data) - cut]))
        (once,) = redraws(again)
        self.assertEqual(once.removeprefix(RESTORE + CLEAR), drawn(data[: len(data) - cut]))
