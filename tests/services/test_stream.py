"""Twisted's protocols on asyncio's transports, over real sockets."""

from __future__ import annotations

import os
import socket
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IHalfCloseableProtocol, IPushProducer
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase
from zope.interface import implementer

from ironcurtain.services.asyncio_bridge import soon
from ironcurtain.services.stream import AsyncioTransport, adopt, connect, serve

reactor: Any = _reactor

MUCH = 4 * 1024 * 1024


class Kept(Protocol):
    """Keeps what it hears."""

    transport: Any

    def __init__(self) -> None:
        self.heard, self.wanted = b"", 0
        self.enough: Deferred[None] = Deferred()
        self.lost: Deferred[Failure] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        self.heard += data
        if b"!" in data:
            raise ValueError("cannot be handled")
        if self.wanted and len(self.heard) >= self.wanted:
            self.wanted = 0
            self.enough.callback(None)

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.lost.callback(reason)  # type: ignore[arg-type]  # trial would take a failure for the end of a test

    def until(self, count: int) -> Deferred[None]:
        """:returns: fires when so many bytes were heard."""
        self.wanted = count
        if len(self.heard) >= count:
            return Deferred.fromCoroutine(_nothing())
        return self.enough


@implementer(IHalfCloseableProtocol)
class HalfOpen(Kept):
    """Answers when the other side has said everything."""

    def readConnectionLost(self) -> None:
        self.transport.write(b"heard " + self.heard)
        self.transport.loseConnection()

    def writeConnectionLost(self) -> None:
        """Never called by our streams: a connection that cannot be written to is lost."""


class Pausing(Kept):
    """Reads nothing at first."""

    def connectionMade(self) -> None:
        self.transport.pauseProducing()


class Greeting(Kept):
    """Tells when it is there."""

    came: Deferred[Any] = Deferred()

    def connectionMade(self) -> None:
        self.lost.addErrback(lambda _: None)
        self.came.callback(self.transport)


@implementer(IPushProducer)
class Producer:
    """Counts."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.resumed: Deferred[None] = Deferred()

    def pauseProducing(self) -> None:
        self.said.append("pause")

    def resumeProducing(self) -> None:
        self.said.append("resume")
        self.resumed.callback(None)

    def stopProducing(self) -> None:
        self.said.append("stop")


async def _nothing() -> None:
    pass


class Connected(TestCase):
    """Protocols on streams."""

    async def connected(self, protocol: Kept) -> socket.socket:
        """:returns: the other side of a protocol's connection; it does not block."""
        mine, other = socket.socketpair()
        self.addCleanup(other.close)
        other.setblocking(False)
        await adopt(mine, protocol)
        return other

    async def ended(self, protocol: Kept) -> None:
        protocol.transport.abortConnection()
        await self.reason(protocol)

    async def reason(self, protocol: Kept) -> Any:
        """:returns: why a connection is over."""
        reasons: list[Failure] = []
        protocol.lost.addErrback(reasons.append)
        await protocol.lost
        return reasons[0].value


class StreamTests(Connected):
    async def test_both_ways(self) -> None:
        protocol = Kept()
        other = await self.connected(protocol)
        self.assertIsInstance(protocol.transport, AsyncioTransport)
        protocol.transport.write(b"now")
        self.assertEqual(other.recv(10), b"now")  # at once, not in the reactor's next turn
        other.sendall(b"hello")
        await protocol.until(5)
        self.assertEqual(protocol.heard, b"hello")
        await self.ended(protocol)

    async def test_what_waits_pauses_the_producer(self) -> None:
        protocol, producer = Kept(), Producer()
        other = await self.connected(protocol)
        stream = protocol.transport
        stream.registerProducer(producer, True)
        stream.write(b"x" * MUCH)
        self.assertEqual(producer.said, ["pause"])
        got = 0
        while got < MUCH:
            try:
                got += len(other.recv(MUCH))
            except BlockingIOError:
                await deferLater(reactor, 0)
        await producer.resumed
        self.assertEqual(producer.said, ["pause", "resume"])
        stream.unregisterProducer()
        await self.ended(protocol)

    async def test_a_producer_that_comes_late_is_reported(self) -> None:
        protocol, producer = Kept(), Producer()
        await self.connected(protocol)
        protocol.transport.write(b"x" * MUCH)
        protocol.transport.registerProducer(producer, True)
        self.assertEqual(producer.said, ["pause"])
        await self.ended(protocol)

    async def test_one_producer_that_can_be_paused(self) -> None:
        protocol = Kept()
        await self.connected(protocol)
        with self.assertRaises(RuntimeError):
            protocol.transport.registerProducer(Producer(), False)
        protocol.transport.registerProducer(Producer(), True)
        with self.assertRaises(RuntimeError):
            protocol.transport.registerProducer(Producer(), True)
        await self.ended(protocol)

    async def test_nothing_is_read_while_paused(self) -> None:
        protocol = Kept()
        other = await self.connected(protocol)
        protocol.transport.pauseProducing()
        other.sendall(b"abc")
        for _ in range(3):
            await deferLater(reactor, 0)
        self.assertEqual(protocol.heard, b"")
        protocol.transport.resumeProducing()
        await protocol.until(3)
        await self.ended(protocol)

    async def test_protocol_that_pauses_when_it_is_connected_reads_nothing(self) -> None:
        protocol = Pausing()
        other = await self.connected(protocol)
        other.sendall(b"abc")
        for _ in range(3):
            await deferLater(reactor, 0)
        self.assertEqual(protocol.heard, b"")
        protocol.transport.resumeProducing()
        await protocol.until(3)
        await self.ended(protocol)

    async def test_what_was_written_is_sent_before_the_end(self) -> None:
        protocol = Kept()
        other = await self.connected(protocol)
        protocol.transport.write(b"x" * MUCH)
        protocol.transport.loseConnection()
        got = b""
        while True:
            try:
                if not (piece := other.recv(MUCH)):
                    break
                got += piece
            except BlockingIOError:
                await deferLater(reactor, 0)
        self.assertEqual(len(got), MUCH)
        self.assertIsInstance(await self.reason(protocol), ConnectionDone)

    async def test_nothing_is_written_after_either_end(self) -> None:
        protocol = Kept()
        other = await self.connected(protocol)
        protocol.transport.loseWriteConnection()
        protocol.transport.write(b"late")
        self.assertEqual(other.recv(10), b"")
        other.close()
        await self.reason(protocol)
        protocol.transport.write(b"later")

    async def test_the_end_of_the_other_side_is_the_end(self) -> None:
        protocol = Kept()
        (await self.connected(protocol)).shutdown(socket.SHUT_WR)
        self.assertIsInstance(await self.reason(protocol), ConnectionDone)

    async def test_a_half_closeable_protocol_may_still_answer(self) -> None:
        protocol = HalfOpen()
        other = await self.connected(protocol)
        other.sendall(b"all")
        other.shutdown(socket.SHUT_WR)
        await self.reason(protocol)
        self.assertEqual(other.recv(100), b"heard all")

    async def test_a_broken_connection_says_so(self) -> None:
        protocol, producer = Kept(), Producer()
        other = await self.connected(protocol)
        protocol.transport.pauseProducing()
        other.close()
        protocol.transport.write(b"to nobody")
        self.assertIsInstance(await self.reason(protocol), ConnectionLost)
        protocol.transport.write(b"harmless")
        protocol.transport.registerProducer(producer, True)
        self.assertEqual(producer.said, ["stop"])

    async def test_what_cannot_be_handled_ends_the_connection(self) -> None:
        protocol = Kept()
        (await self.connected(protocol)).sendall(b"!")
        self.assertIsInstance(await self.reason(protocol), ConnectionDone)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)


class ServerTests(TestCase):
    """Listening, and connecting to a path."""

    async def test_who_comes_over_tcp_has_an_address(self) -> None:
        server = await serve(socket.create_server(("127.0.0.1", 0)), Factory.forProtocol(Greeting))
        self.addCleanup(server.close)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            transport = await Greeting.came
            self.assertEqual(transport.getPeer().port, client.getsockname()[1])
            self.assertEqual((transport.getHost().host, transport.getPeer().host), ("127.0.0.1", "127.0.0.1"))
            transport.abortConnection()

    async def test_a_server_that_is_cancelled_listens_no_more(self) -> None:
        await deferLater(reactor, 0)  # from here on the loop runs
        listening = socket.create_server(("127.0.0.1", 0))
        descriptor = listening.fileno()
        served, turn = Deferred.fromCoroutine(serve(listening, Factory())), Deferred[None]()
        soon(lambda: turn.callback(None))
        await turn  # the loop watches the socket already
        served.cancel()
        with self.assertRaises(CancelledError):
            await served
        self.assertEqual(listening.fileno(), -1)
        protocol = Kept()
        mine, theirs = socket.socketpair()
        with theirs:
            os.dup2(mine.detach(), descriptor)  # the loop must not take it for the one it watched
            await adopt(socket.socket(fileno=descriptor), protocol)
            theirs.sendall(b"abc")
            await protocol.until(3)
            protocol.transport.loseConnection()
            with self.assertRaises(ConnectionDone):
                await protocol.lost

    async def test_what_is_cancelled_at_once_is_closed(self) -> None:
        mine, theirs = socket.socketpair()
        listening = socket.create_server(("127.0.0.1", 0))
        with theirs:
            for begun in (adopt(mine, Kept()), serve(listening, Factory())):
                deferred = Deferred.fromCoroutine(begun)
                deferred.cancel()
                with self.assertRaises(CancelledError):
                    await deferred
            self.assertEqual((mine.fileno(), listening.fileno()), (-1, -1))
            self.assertEqual(theirs.recv(1), b"")

    async def test_nobody_listens(self) -> None:
        with self.assertRaises(OSError):
            await connect("/nonexistent/socket", Kept())
