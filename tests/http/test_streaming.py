from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone

from ironcurtain.http.streaming import Watch, deliver


class FakeResponse:
    """Keeps the protocol that a body is to be delivered to."""

    protocol: Protocol

    def deliverBody(self, protocol: Protocol) -> None:
        self.protocol = protocol


class DeliverTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.got: list[bytes] = []
        self.response = FakeResponse()
        self.clock = Clock()
        self.finished = deliver(self.clock, self.response, self.take)  # type: ignore[arg-type]

    def take(self, data: bytes) -> bool:
        self.got.append(data)
        if data == b"bad":
            raise ZeroDivisionError
        return data == b"enough"

    def feed(self, *pieces: bytes) -> None:
        self.clock.advance(0)
        for piece in pieces:
            self.response.protocol.dataReceived(piece)

    def lose(self, reason: Exception) -> None:
        self.clock.advance(0)
        self.response.protocol.connectionLost(Failure(reason))

    def test_it_fires_at_the_end(self) -> None:
        self.feed(b"a", b"b")
        self.assertNoResult(self.finished)
        self.lose(ResponseDone())
        self.successResultOf(self.finished)

    def test_nothing_is_delivered_after_there_was_enough(self) -> None:
        self.feed(b"enough", b"more", b"bad")
        self.lose(ConnectionLost())
        self.successResultOf(self.finished)
        self.assertEqual(self.got, [b"enough"])

    def test_a_reader_that_fails_ends_it_once(self) -> None:
        self.feed(b"bad", b"bad")
        self.failureResultOf(self.finished, ZeroDivisionError)
        self.assertEqual(self.got, [b"bad"])

    def test_cancelling_before_the_start_leaves_nothing_behind(self) -> None:
        self.finished.cancel()
        self.failureResultOf(self.finished, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_lost_connection_is_a_failure(self) -> None:
        self.lose(ConnectionLost())
        self.failureResultOf(self.finished, ConnectionLost)


class WatchTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.watch = Watch(self.clock, 10)
        self.awaited: Deferred[Any] = Deferred()
        self.watch.over(self.awaited)

    def test_silence_cancels_what_is_awaited(self) -> None:
        self.clock.advance(9.9)
        self.assertNoResult(self.awaited)
        self.clock.advance(0.1)
        self.failureResultOf(self.awaited, CancelledError)
        self.assertTrue(self.watch.expired)

    def test_a_sign_of_life_starts_the_wait_afresh(self) -> None:
        self.clock.advance(9)
        self.watch.alive()
        self.clock.advance(9)
        self.assertNoResult(self.awaited)

    def test_once_stopped_nothing_is_left_behind(self) -> None:
        self.watch.stop()
        self.watch.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertFalse(self.watch.expired)
