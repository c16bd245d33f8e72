from __future__ import annotations

import socket
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import TestCase

from ironcurtain.mitm_proxy.flow import FlowSignal
from ironcurtain.mitm_proxy.sending import QUEUE_LIMIT, PromptTransport, prompt
from tests.mitm_proxy.waiting import until

MUCH = 8 * 1024 * 1024
"""More than the kernel keeps for a reader that does not read."""


class PromptTransportTests(TestCase):
    async def start(self) -> tuple[PromptTransport, socket.socket]:
        """:returns: our side, and the socket of a peer that reads only when the test does."""
        reactor: Any = the_reactor
        made: list[Protocol] = []

        class Kept(Protocol):
            def connectionMade(self) -> None:
                made.append(self)

        port = reactor.listenTCP(0, Factory.forProtocol(Kept), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        peer = socket.create_connection(("127.0.0.1", port.getHost().port))
        self.addCleanup(peer.close)
        await until(lambda: made, "the connection")
        transport = prompt(made[0].transport)
        self.addCleanup(transport.abortConnection)
        peer.setblocking(False)
        return transport, peer

    async def read(self, peer: socket.socket, size: int) -> bytes:
        got = bytearray()

        def enough() -> bool:
            try:
                while len(got) < size:
                    data = peer.recv(1024 * 1024)
                    if not data:
                        return True
                    got.extend(data)
            except BlockingIOError:
                return False
            return True

        await until(enough, "what was sent")
        return bytes(got)

    async def test_bytes_are_sent_before_the_reactor_turns(self) -> None:
        transport, peer = await self.start()
        transport.write(b"now")
        self.assertEqual(peer.recv(100), b"now")

    async def test_the_order_is_kept_when_the_socket_is_full(self) -> None:
        transport, peer = await self.start()
        pieces = [bytes([number % 251]) * 30_000 for number in range(MUCH // 30_000)]
        for piece in pieces:
            transport.write(piece)
        expected = b"".join(pieces)
        first = await self.read(peer, len(expected) // 2)
        transport.write(b"the end")
        rest = await self.read(peer, len(expected) + 7 - len(first))
        self.assertEqual(first + rest, expected + b"the end")

    async def test_the_producer_is_paused_while_much_waits(self) -> None:
        transport, peer = await self.start()
        heard: list[bool] = []
        transport.registerProducer(FlowSignal(heard.append), True)
        transport.write(bytes(QUEUE_LIMIT // 2))
        self.assertEqual(heard, [])
        transport.write(bytes(MUCH))
        transport.write(b"more")
        self.assertEqual(heard, [True])
        await self.read(peer, QUEUE_LIMIT // 2 + MUCH + 4)
        await until(lambda: len(heard) > 1, "the producer to go on")
        self.assertEqual(heard, [True, False])
        transport.write(b"at once")
        self.assertEqual(await self.read(peer, 7), b"at once")

    async def test_reading_is_paused_and_resumed_below(self) -> None:
        transport, peer = await self.start()
        transport.write(bytes(MUCH))
        transport.pauseProducing()
        transport.resumeProducing()
        transport.write(b"after")
        self.assertTrue((await self.read(peer, MUCH + 5)).endswith(b"after"))

    async def test_what_waits_is_sent_before_the_connection_closes(self) -> None:
        transport, peer = await self.start()
        transport.write(bytes(MUCH))
        transport.write(b"the end")
        transport.loseConnection()
        self.assertTrue((await self.read(peer, MUCH + 8)).endswith(b"the end"))

    async def test_nothing_is_said_by_a_connection_that_is_aborted(self) -> None:
        transport, peer = await self.start()
        transport.drop_writes()
        transport.write(b"goodbye")
        transport.abortConnection()
        with self.assertRaises(ConnectionResetError):
            await self.read(peer, 1)

    async def test_a_peer_that_has_gone_is_noticed_by_the_reactor(self) -> None:
        transport, peer = await self.start()
        peer.close()
        await until(lambda: not transport.connected, "the end")
        transport.write(b"too late")

    def test_other_transports_are_left_alone(self) -> None:
        transport = StringTransport()
        self.assertIs(prompt(transport), transport)
