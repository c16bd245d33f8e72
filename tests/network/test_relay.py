"""Connections that are passed on as they are."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost, DNSLookupError
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import StringTransport
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.network.access import Destination
from ironcurtain.network.held import HeldConnections
from ironcurtain.network.judge import AccountUse
from ironcurtain.network.relay import AHEAD_LIMIT, Relay, Splice
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.services.stream import adopt, serve

DESTINATION = Destination("db.example.com", 5432, private=True)
SECONDS = 100.0


class Wire(StringTransport):
    """A transport that knows half-closed connections."""

    half_closed = False

    def loseWriteConnection(self) -> None:
        """Close the sending side."""
        self.half_closed = True


class Judge:
    """Decides as told, when told."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.answer: Deferred[RequestRefusal | None] = Deferred(lambda _: self.withdrawn.append(None))
        self.withdrawn: list[None] = []
        self.held = HeldConnections()

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        """Remember the question, and wait for the answer."""
        self.asked.append((host, port))
        return await self.answer

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        """Nobody asks that of a relay."""
        raise AssertionError(url)

    def may_be_private(self, host: str, port: int) -> bool:
        """Relays are told before."""
        raise AssertionError(host)

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        """Remember the connection."""
        return self.held.add("me", host, port, end)


class Dialer:
    """Connects to a wire, or as told."""

    def __init__(self, connect: Callable[[IProtocol], Any] = lambda protocol: None) -> None:
        self.dialled: list[tuple[str, int, bool]] = []
        self._connect = connect

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """Remember the destination, and connect."""
        self.dialled.append((host, port, private))
        if (waiting := self._connect(protocol)) is not None:
            await waiting


class SpliceTests(SynchronousTestCase):
    """Two connections, of which each gets the other's bytes."""

    def setUp(self) -> None:
        self.near, self.far, self.ended = Wire(), Wire(), list[None]()
        self.splice = Splice(ended=lambda: self.ended.append(None))

    def connect(self) -> None:
        """Connect both sides."""
        self.splice.near.makeConnection(self.near)
        self.splice.far.makeConnection(self.far)

    def test_bytes_are_passed_on_both_ways(self) -> None:
        self.connect()
        self.splice.near.dataReceived(b"question")
        self.splice.far.dataReceived(b"answer")
        self.assertEqual((self.far.value(), self.near.value()), (b"question", b"answer"))

    def test_bytes_before_the_other_side_is_connected_are_kept(self) -> None:
        self.splice.near.makeConnection(self.near)
        self.splice.near.dataReceived(b"hello ")
        self.splice.near.dataReceived(b"there")
        self.splice.far.makeConnection(self.far)
        self.assertEqual(self.far.value(), b"hello there")

    def test_a_client_that_sends_much_before_waits(self) -> None:
        self.splice.near.makeConnection(self.near)
        self.splice.near.dataReceived(b"x" * AHEAD_LIMIT)
        self.assertEqual(self.near.producerState, "paused")
        self.splice.far.makeConnection(self.far)
        self.assertEqual(self.near.producerState, "producing")

    def test_a_side_that_does_not_read_pauses_the_other(self) -> None:
        self.connect()
        producer: Any = self.near.producer
        producer.pauseProducing()
        self.assertEqual((self.far.producerState, self.near.producerState), ("paused", "producing"))
        producer.resumeProducing()
        self.assertEqual(self.far.producerState, "producing")

    def test_the_end_of_ones_bytes_is_passed_on(self) -> None:
        self.connect()
        self.splice.near.readConnectionLost()
        self.assertTrue(self.far.half_closed)
        self.splice.far.dataReceived(b"answer")
        self.assertEqual(self.near.value(), b"answer")
        self.assertFalse(self.near.disconnecting)
        self.splice.far.readConnectionLost()
        self.assertTrue(self.near.disconnecting and self.far.disconnecting)

    def test_the_end_of_a_clients_bytes_before_the_other_side_is_connected(self) -> None:
        self.splice.near.makeConnection(self.near)
        self.splice.near.dataReceived(b"all")
        self.splice.near.readConnectionLost()
        self.splice.far.makeConnection(self.far)
        self.assertEqual((self.far.value(), self.far.half_closed), (b"all", True))

    def test_a_reset_resets_the_other_side(self) -> None:
        self.connect()
        self.splice.far.connectionLost(Failure(ConnectionLost()))
        self.assertTrue(self.near.disconnected)
        self.assertEqual(self.ended, [])
        self.splice.near.connectionLost(Failure(ConnectionLost()))
        self.assertEqual(self.ended, [None])

    def test_an_orderly_end_closes_the_other_side_in_order(self) -> None:
        self.connect()
        self.splice.far.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((self.near.disconnecting, self.near.disconnected), (True, False))
        self.assertIsNone(self.near.producer)

    def test_a_side_that_is_connected_after_the_other_was_lost_is_reset(self) -> None:
        self.splice.near.makeConnection(self.near)
        self.splice.near.connectionLost(Failure(ConnectionDone()))
        self.splice.far.makeConnection(self.far)
        self.assertTrue(self.far.disconnected)
        self.splice.far.connectionLost(Failure(ConnectionLost()))
        self.assertEqual(self.ended, [None])


class RelayTests(SynchronousTestCase):
    """Judged, then dialled, then spliced."""

    def setUp(self) -> None:
        self.judge, self.near, self.far, self.said = Judge(), Wire(), Wire(), list[str]()
        self.dialer = Dialer(lambda protocol: protocol.makeConnection(self.far))

    def client(self, dialer: Dialer | None = None) -> Any:
        """:returns: the protocol of a new client."""
        self.relay = Relay(DESTINATION, self.judge, dialer or self.dialer, self.said.append)
        protocol = self.relay.buildProtocol(None)
        protocol.makeConnection(self.near)
        return protocol

    def test_nothing_is_dialled_before_the_judge_has_allowed_it(self) -> None:
        client = self.client()
        client.dataReceived(b"hello")
        self.assertEqual((self.judge.asked, self.dialer.dialled), ([("db.example.com", 5432)], []))
        self.judge.answer.callback(None)
        self.assertEqual(self.dialer.dialled, [("db.example.com", 5432, True)])
        self.assertEqual(self.far.value(), b"hello")

    def test_a_connection_ends_when_what_allowed_it_is_taken_back(self) -> None:
        client = self.client()
        self.judge.answer.callback(None)
        self.judge.held.recheck(lambda party, host, port: True)
        self.assertFalse(self.near.disconnected)
        self.judge.held.recheck(lambda *place: place != ("me", "db.example.com", 5432))
        self.assertTrue(self.near.disconnected)
        self.assertTrue(self.far.disconnected)
        client.connectionLost(Failure(ConnectionDone()))
        self.judge.held.recheck(lambda *place: self.fail("it is forgotten"))

    def test_a_connection_that_ended_is_forgotten(self) -> None:
        client = self.client()
        self.judge.answer.callback(None)
        client.connectionLost(Failure(ConnectionDone()))
        self.relay.close()
        self.judge.held.recheck(lambda *place: self.fail("it is forgotten"))

    def test_a_refused_connection_is_reset_and_never_dialled(self) -> None:
        self.client()
        self.judge.answer.callback(
            RequestRefusal(403, "denied", "the connection to db.example.com:5432 is refused: no")
        )
        self.assertTrue(self.near.disconnected)
        self.assertEqual(self.dialer.dialled, [])
        self.assertEqual(self.said, ["IronCurtain: the connection to db.example.com:5432 is refused: no"])

    def test_a_connection_that_cannot_be_made_is_reset(self) -> None:
        def fail(protocol: IProtocol) -> None:
            raise DNSLookupError("no such host")

        self.client(Dialer(fail))
        self.judge.answer.callback(None)
        self.assertTrue(self.near.disconnected)
        self.assertIn("db.example.com:5432 cannot be made: ", self.said[0])

    def test_a_judge_that_fails_refuses(self) -> None:
        self.client()
        self.judge.answer.errback(ValueError("broken"))
        self.assertTrue(self.near.disconnected)
        self.assertEqual(self.dialer.dialled, [])

    def test_a_client_that_leaves_withdraws_its_question(self) -> None:
        client = self.client()
        client.connectionLost(Failure(ConnectionDone()))
        self.assertEqual(self.judge.withdrawn, [None])
        self.assertEqual((self.dialer.dialled, self.said), ([], []))

    def test_closing_resets_every_client(self) -> None:
        self.client()
        self.relay.close()
        self.assertTrue(self.near.disconnected)
        self.assertEqual(self.judge.withdrawn, [None])


class Echo(Protocol):
    """Sends back what it gets."""

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)


class SocketTests(TestCase):
    """On real sockets."""

    async def relay(self, dialer: Dialer, refusal: RequestRefusal | None = None) -> tuple[str, int]:
        """:returns: the address of a relay's listener."""
        judge, listening = Judge(), socket.create_server(("127.0.0.1", 0))
        judge.answer.callback(refusal)
        address: tuple[str, int] = listening.getsockname()
        relay = Relay(DESTINATION, judge, dialer)
        server = await serve(listening, relay)
        self.addCleanup(relay.close)
        self.addCleanup(server.close)
        return address

    async def test_a_refused_client_is_reset_at_once(self) -> None:
        address = await self.relay(Dialer(), RequestRefusal(403, "denied", "no"))

        def client() -> None:
            with socket.create_connection(address, SECONDS) as connected:
                connected.sendall(b"hello")
                connected.recv(1)

        await self.assertFailure(deferToThread(client), ConnectionResetError)

    async def test_much_passes_through_and_back_and_both_ends_are_heard(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        echo: tuple[str, int] = listening.getsockname()
        self.addCleanup((await serve(listening, Factory.forProtocol(Echo))).close)

        async def dial(protocol: IProtocol) -> None:
            await adopt(socket.create_connection(echo, SECONDS), protocol)

        address, much = await self.relay(Dialer(dial)), b"0123456789" * 400_000

        def client() -> bytes:
            with socket.create_connection(address, SECONDS) as connected:
                sent, got = 0, bytearray()
                while sent < len(much):
                    sent += connected.send(much[sent : sent + 100_000])
                    while len(got) < sent:
                        got += connected.recv(1 << 20)
                connected.shutdown(socket.SHUT_WR)
                while data := connected.recv(1 << 20):
                    got += data
                return bytes(got)

        self.assertEqual(await deferToThread(client), much)
