"""Where bodies end."""

from __future__ import annotations

import h11
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.framing import (
    SIZE_LINE_LIMIT,
    TRAILER_LIMIT,
    Chunked,
    Counted,
    Framing,
    UntilClose,
)
from tests.mitm_proxy.refusing import refuses


def feed(framing: Framing, data: bytes, size: int) -> tuple[bytes, bytes]:
    """:returns: the payload of bytes that come in slices, and what is left when the body is done."""
    payload, at = b"", 0
    while at < len(data) and not framing.done:
        piece = data[at : at + size]
        got, used = framing.feed(piece)
        payload, at = payload + got, at + used
        assert used == len(piece) or framing.done
    return payload, data[at:]


def chunked(pieces: list[bytes]) -> bytes:
    """:returns: these pieces as a chunked body."""
    return b"".join(b"%X\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


class CountedTests(SynchronousTestCase):
    """Bodies of known length, or of none."""

    @given(st.binary(max_size=50), st.binary(max_size=20), st.integers(1, 30))
    def test_it_takes_its_length_and_no_more(self, body: bytes, rest: bytes, size: int) -> None:
        framing = Counted(len(body))
        self.assertEqual(feed(framing, body + rest, size), (body, rest))
        self.assertTrue(framing.done)

    def test_it_is_not_done_before(self) -> None:
        framing = Counted(3)
        self.assertEqual(framing.feed(b"ab"), (b"ab", 2))
        self.assertFalse(framing.done or framing.may_end)

    def test_until_the_connection_closes(self) -> None:
        framing = UntilClose()
        self.assertEqual(framing.feed(b"abc"), (b"abc", 3))
        self.assertTrue(framing.may_end and not framing.done)


class ChunkedTests(SynchronousTestCase):
    """Chunked bodies."""

    @given(st.lists(st.binary(max_size=30)), st.binary(max_size=20), st.integers(1, 40), st.booleans())
    def test_it_gives_the_payload_and_leaves_the_rest(
        self, pieces: list[bytes], rest: bytes, size: int, strict: bool
    ) -> None:
        framing = Chunked(strict)
        self.assertEqual(feed(framing, chunked(pieces) + rest, size), (b"".join(pieces), rest))
        self.assertTrue(framing.done)

    def test_what_is_refused(self) -> None:
        bodies = (
            b"5\nhello\r\n0\r\n\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhelloX\r\n0\r\n\r\n",
            b"4\r\nhello\r\n0\r\n\r\n",
            b"+5\r\nhello\r\n",
            b"-5\r\nhello\r\n",
            b"0x5\r\nhello\r\n",
            b" 5\r\nhello\r\n",
            b"5 \r\nhello\r\n",
            b"5;x=y\r\nhello\r\n",
            b"5;\r\nhello\r\n",
            b"5_0\r\nhello\r\n",
            b"\r\n",
            b"g\r\n",
            b"\xb2\r\n",
            b"5\r\r\nhello\r\n",
            b"1" * 16 + b"\r\n",
            b"0" * (SIZE_LINE_LIMIT + 1),
            b"0\r\nx-key: value\r\n\r\n",
        )
        taken = [b for b in bodies for size in (1, 3, 999) if not refuses(feed, Chunked(strict=True), b, size)]
        self.assertEqual(taken, [])

    def test_what_providers_may_add_is_dropped(self) -> None:
        data = b'5;a="b"\r\nhello\r\n0 ;c\r\nx-request: 1\r\nx-other: 2\r\n\r\nrest'
        self.assertEqual(feed(Chunked(strict=False), data, 100), (b"hello", b"rest"))

    def test_trailers_without_end(self) -> None:
        with self.assertRaises(ProtocolViolation):
            feed(Chunked(strict=False), b"0\r\n" + b"x: aaaaaaaaaa\r\n" * TRAILER_LIMIT, 64)
        with self.assertRaises(ProtocolViolation):
            feed(Chunked(strict=False), b"0\r\n" + b"a" * TRAILER_LIMIT * 2, 64)

    @given(
        st.binary(max_size=60) | st.text("0123456789abcdefF;\r\n x\t+", max_size=40).map(str.encode), st.integers(1, 9)
    )
    @example(b"3\r\nabc\r\n0\r\n\r\n", 2)
    @example(b"0\r\n\r\n0\r\n\r\n", 100)
    def test_whoever_else_reads_it_reads_the_same(self, data: bytes, size: int) -> None:
        """What we take for a whole body, h11 takes for the same body with the same rest."""
        framing = Chunked(strict=True)
        try:
            payload, rest = feed(framing, data, size)
        except ProtocolViolation:
            return
        if not framing.done:
            return
        server = h11.Connection(h11.SERVER)
        server.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + data)
        server.next_event()
        read = b""
        while isinstance(event := server.next_event(), h11.Data):
            read += event.data
        self.assertIsInstance(event, h11.EndOfMessage)
        self.assertEqual((read, server.trailing_data[0]), (payload, rest))
