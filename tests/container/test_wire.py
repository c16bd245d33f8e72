from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.wire import (
    HEAD_LIMIT,
    STDERR,
    STDOUT,
    Demultiplexer,
    Head,
    HeadReader,
    error_message,
    hijack_request,
)
from ironcurtain.errors import ProtocolViolation

UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"


def frame(stream: int, data: bytes) -> bytes:
    """:returns: a frame as the Engine sends it."""
    return bytes((stream, 0, 0, 0)) + len(data).to_bytes(4, "big") + data


def slices(data: bytes, size: int) -> list[bytes]:
    """:returns: the data in pieces."""
    return [data[i : i + size] for i in range(0, len(data), size)]


class DemultiplexerTests(SynchronousTestCase):
    @given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=50)), max_size=10), st.integers(1, 70))
    def test_any_slicing_gives_the_same_streams(self, frames: list[tuple[int, bytes]], size: int) -> None:
        reader, got = Demultiplexer(), {STDOUT: b"", STDERR: b""}
        for piece in slices(b"".join(frame(*f) for f in frames), size):
            for stream, data in reader.feed(piece):
                self.assertTrue(data)
                got[stream] += data
        self.assertEqual(got[STDOUT], b"".join(data for stream, data in frames if stream == 1))
        self.assertEqual(got[STDERR], b"".join(data for stream, data in frames if stream != 1))

    def test_a_part_of_a_frame_does_not_wait_for_the_rest(self) -> None:
        self.assertEqual(Demultiplexer().feed(frame(2, b"abc")[:-1]), [(STDERR, b"ab")])

    def test_a_huge_frame_costs_nothing(self) -> None:
        reader = Demultiplexer()
        reader.feed(b"\1\0\0\0\xff\xff\xff\xff")
        self.assertEqual(reader.feed(b"x" * 1000), [(STDOUT, b"x" * 1000)])

    @given(st.binary(min_size=8, max_size=40))
    def test_anything_else_is_refused_or_read(self, data: bytes) -> None:
        if data[0] <= 3 and data[1:4] == b"\0\0\0":
            Demultiplexer().feed(data[:8])
        else:
            with self.assertRaises(ProtocolViolation):
                Demultiplexer().feed(data)


class HeadTests(SynchronousTestCase):
    @given(st.binary(max_size=30), st.integers(1, 80))
    def test_any_slicing_gives_the_same_head(self, rest: bytes, size: int) -> None:
        reader, pieces, head = HeadReader(), slices(UPGRADED + rest, size), None
        while head is None:
            head = reader.feed(pieces.pop(0))
        self.assertEqual((head.status, head.length, head.rest + b"".join(pieces)), (101, 0, rest))

    def test_a_refusal_has_a_length(self) -> None:
        head = HeadReader().feed(b"HTTP/1.1 409 Conflict\r\ncontent-LENGTH: 5\r\n\r\n12")
        self.assertEqual(head, Head(409, 5, b"12"))

    def test_what_is_no_answer(self) -> None:
        for data in (
            b"\r\n\r\n",
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 409 x\r\nContent-Length: -1\r\n\r\n",
            b"x" * (HEAD_LIMIT + 1),
        ):
            with self.assertRaises(ProtocolViolation, msg=data[:40]):
                HeadReader().feed(data)

    def test_the_request(self) -> None:
        head, _, body = hijack_request("/v1.41/exec/x/start", b'{"Tty":false}').partition(b"\r\n\r\n")
        self.assertEqual(body, b'{"Tty":false}')
        self.assertIn(b"\r\nContent-Length: 13", head)
        self.assertIn(b"\r\nUpgrade: tcp\r\n", head)

    def test_error_messages(self) -> None:
        self.assertEqual(error_message(b'{"message":"no such thing"}'), "no such thing")
        for body in (b"page not found\n", b'{"other": 1}', b'"x"', b"\xff"):
            self.assertEqual(error_message(body), body.decode("utf-8", "replace").strip())
