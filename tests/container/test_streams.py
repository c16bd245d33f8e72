from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.streams import Stream
from tests.container.test_wire import UPGRADED


class StreamTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.got = bytearray()
        self.waits: list[Deferred[None]] = []
        self.stream = Stream(b"request", self.receive, "unix:///engine")
        self.transport = StringTransport()
        self.stream.makeConnection(self.transport)

    def receive(self, data: bytes) -> Deferred[None] | None:
        self.got += data
        return self.waits[-1] if self.waits else None

    def lose(self) -> None:
        self.stream.connectionLost(Failure(ConnectionDone()))

    def test_what_comes_with_the_head_belongs_to_the_stream(self) -> None:
        self.assertEqual(self.transport.value(), b"request")
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
        error = self.failureResultOf(self.stream.opened, EngineError).value
        self.assertEqual((error.status, error.message), (409, "paused"))
        self.assertTrue(self.transport.disconnected)
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
