from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.streams import STDERR, STDOUT, Demultiplexer, EngineStream, error_message
from ironcurtain.errors import ProtocolViolation

UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


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


class StreamTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.got = bytearray()
        self.waits: list[Deferred[None]] = []
        self.begin(upgrade=True)

    def begin(self, upgrade: bool) -> None:
        self.stream = EngineStream("/x", b"{}", "application/json", upgrade, self.receive, "unix:///engine")
        self.transport = StringTransport()
        self.stream.makeConnection(self.transport)

    def receive(self, data: bytes) -> Deferred[None] | None:
        self.got += data
        return self.waits[-1] if self.waits else None

    def lose(self) -> None:
        self.stream.connectionLost(Failure(ConnectionDone()))

    def test_what_comes_with_the_head_belongs_to_the_stream(self) -> None:
        head, _, body = self.transport.value().partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"POST /x HTTP/1.1\r\n"))
        self.assertIn(b"\r\nContent-Length: 2", head)
        self.assertIn(b"\r\nUpgrade: tcp\r\n", head)
        self.assertEqual(body, b"{}")
        self.stream.dataReceived(UPGRADED[:20])
        self.assertNoResult(self.stream.opened)
        self.stream.dataReceived(UPGRADED[20:] + b"a")
        self.successResultOf(self.stream.opened)
        self.stream.dataReceived(b"b")
        self.assertEqual(self.got, b"ab")
        self.assertNoResult(self.stream.ended)
        self.lose()
        self.successResultOf(self.stream.ended)

    def test_a_refusal_says_why(self) -> None:
        self.stream.dataReceived(b'HTTP/1.1 409 Conflict\r\nContent-Length: 20\r\n\r\n{"message"')
        self.assertNoResult(self.stream.opened)
        self.stream.dataReceived(b':"paused"}')
        self.assertTrue(self.transport.disconnected)
        self.lose()
        error = self.failureResultOf(self.stream.opened, EngineError).value
        self.assertEqual((error.status, error.message), (409, "paused"))

    def test_a_refusal_without_a_length_ends_with_the_connection(self) -> None:
        self.stream.dataReceived(b"HTTP/1.1 400 Bad Request\r\n\r\nno")
        self.lose()
        error = self.failureResultOf(self.stream.opened, EngineError).value
        self.assertEqual((error.status, error.message), (400, "no"))

    @given(st.lists(st.binary(min_size=1, max_size=50), max_size=5), st.integers(1, 70))
    def test_a_body_is_whole_in_any_slicing(self, pieces: list[bytes], size: int) -> None:
        self.got.clear()
        self.begin(upgrade=False)
        self.assertNotIn(b"Upgrade", self.transport.value())
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        for piece in slices(CHUNKED + chunks, size):
            self.stream.dataReceived(piece)
        self.successResultOf(self.stream.opened)
        self.assertFalse(self.stream.whole or self.transport.disconnected)
        self.stream.dataReceived(b"0\r\n\r\n")
        self.assertTrue(self.stream.whole and self.transport.disconnected)
        self.assertEqual(self.got, b"".join(pieces))
        self.lose()

    def test_an_engine_that_goes_away(self) -> None:
        self.stream.dataReceived(UPGRADED[:20])
        self.lose()
        self.assertIn("closed the connection", str(self.failureResultOf(self.stream.opened, EngineUnavailable).value))

    def test_no_engine_at_all(self) -> None:
        self.stream.dataReceived(b"220 mail.example ESMTP\r\n\r\n")
        self.failureResultOf(self.stream.opened, EngineUnavailable)
        self.assertTrue(self.transport.disconnected)
        self.lose()

    def test_nothing_more_is_read_until_all_was_taken(self) -> None:
        self.stream.dataReceived(UPGRADED)
        self.waits.append(Deferred())
        self.stream.dataReceived(b"a")
        self.waits.append(Deferred())
        self.stream.dataReceived(b"b")
        self.assertEqual(self.transport.producerState, "paused")
        self.waits[0].callback(None)
        self.assertEqual(self.transport.producerState, "paused")
        self.waits[1].errback(ValueError())
        self.assertEqual(self.transport.producerState, "producing")

    def test_cancelling_closes_the_connection(self) -> None:
        self.stream.opened.addErrback(lambda _: None)
        self.stream.opened.cancel()
        self.assertTrue(self.transport.disconnected)
        self.lose()


class ErrorMessageTests(SynchronousTestCase):
    def test_error_messages(self) -> None:
        self.assertEqual(error_message(b'{"message":"no such thing"}'), "no such thing")
        for body in (b"page not found\n", b'{"other": 1}', b'"x"', b"\xff"):
            self.assertEqual(error_message(body), body.decode("utf-8", "replace").strip())
