"""The terminal of a container, without one: what the Engine would send is given."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.streams import EngineStream, Receiver
from ironcurtain.container.terminal import BURST_SIZE, MARK, REST_SECONDS, ContainerTerminal
from tests.container.test_streams import UPGRADED


class GivenEngine:
    """Attaches to what the test says."""

    def __init__(self) -> None:
        self.clock, self.wire = Clock(), StringTransport()

    async def attach(self, container: str, receive: Receiver) -> EngineStream:
        """:returns: the one connection, open."""
        self.stream = EngineStream("/attach", b"", "", True, receive, "unix:///engine")
        self.stream.makeConnection(self.wire)
        self.stream.dataReceived(UPGRADED + MARK.encode() + b"\r\n")
        return self.stream


class Owner:
    """Counts."""

    def __init__(self) -> None:
        self.size = 0

    def received(self, data: bytes) -> None:
        self.size += len(data)

    def input_full(self, full: bool) -> None:
        """Nothing is typed."""


class FloodTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.engine = GivenEngine()
        given: Any = self.engine
        self.terminal = ContainerTerminal(given, 80, 24)
        self.terminal.owner = self.owner = Owner()
        self.successResultOf(Deferred.fromCoroutine(self.terminal.open("container")))

    def flood(self) -> str:
        """:returns: whether more is read after more than a burst has come."""
        size = self.owner.size + BURST_SIZE + 4096
        while self.owner.size < size:
            self.engine.stream.dataReceived(b"x" * 4096)
        return str(self.engine.wire.producerState)

    def test_it_rests_and_goes_on(self) -> None:
        self.assertEqual(self.flood(), "paused")
        self.engine.clock.advance(REST_SECONDS)
        self.assertEqual(self.engine.wire.producerState, "producing")

    def test_what_is_paused_stays_so_after_a_rest(self) -> None:
        self.terminal.pause()
        self.assertEqual(self.flood(), "paused")
        self.engine.clock.advance(REST_SECONDS)
        self.assertEqual(self.engine.wire.producerState, "paused")
        self.terminal.resume()
        self.engine.clock.advance(REST_SECONDS)
        self.assertEqual(self.engine.wire.producerState, "producing")

    def test_the_last_output_does_not_rest(self) -> None:
        self.terminal.flow()
        self.assertEqual(self.flood(), "producing")

    def test_nothing_is_left_behind(self) -> None:
        self.flood()
        self.engine.stream.connectionLost(Failure(ConnectionDone()))
        self.assertEqual(self.engine.clock.getDelayedCalls(), [])
