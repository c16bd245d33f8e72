"""Where sequences end, and the text without them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.sequences import SEQUENCE, plain, unfinished

WHOLE = (
    b"\x1b[1;31m",
    b"\x1b[?1049h",
    b"\x1b[2 q",
    b"\x1b]0;title\x07",
    b"\x1b]8;;http://x\x1b\\",
    b"\x1bPq#0;2\x1b\\",
    b"\x1b_Ga=T\x1b\\",
    b"\x1b7",
    b"\x1b(0",
    b"\x1bc",
    "é".encode(),
    "中".encode(),
    "👩".encode(),
)


class UnfinishedTests(SynchronousTestCase):
    """The beginning of something at the end of output."""

    def test_every_cut(self) -> None:
        for data in WHOLE:
            self.assertEqual(unfinished(b"text" + data), b"", data)
            for cut in range(1, len(data)):
                self.assertEqual(unfinished(b"text\x1b[0m" + data[:cut]), data[:cut], (data, cut))

    def test_bytes_that_are_no_text_are_not_waited_for(self) -> None:
        self.assertEqual(unfinished(b"\xff\xff"), b"")
        self.assertEqual(unfinished(b"\x80\x80\x80\x80"), b"")

    def test_what_is_too_long_is_none(self) -> None:
        self.assertEqual(unfinished(b"\x1b]0;" + b"x" * 5000), b"")

    @given(st.lists(st.sampled_from([*WHOLE, b"x", b"\x1b", b"\x1b]", b"\r\n"])), st.lists(st.integers(1, 9)))
    def test_it_is_always_an_end(self, pieces: list[bytes], cuts: list[int]) -> None:
        data = b"".join(pieces)
        data = data[: max(0, len(data) - sum(cuts))]
        self.assertTrue(data.endswith(unfinished(data)))


class PlainTests(SynchronousTestCase):
    """Text without sequences."""

    def test_sequences_within_words(self) -> None:
        self.assertEqual(plain(b"LOOP\x1b[1m_\x1b[0mCOMP\x1b]0;x\x07LETE\r\nnext\x1b[K"), "LOOP_COMPLETE\nnext")

    def test_backspaces_and_control_characters(self) -> None:
        self.assertEqual(plain(b"ab\bc\x00\x07d"), "acd")

    def test_invalid_text(self) -> None:
        self.assertEqual(plain(b"a\xffb"), "a�b")

    @given(st.binary())
    def test_no_sequence_is_left(self, data: bytes) -> None:
        self.assertIsNone(SEQUENCE.search(plain(data).encode()))
