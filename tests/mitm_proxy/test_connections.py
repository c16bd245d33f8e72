"""How agents connect, and how many at a time."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol

from ironcurtain.mitm_proxy.limits import MitmLimits
from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import HOST, reply
from tests.mitm_proxy.support import Base, Bench
from tests.mitm_proxy.waiting import the_reactor, until

CONNECT = f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode()


class LimitTests(Base):
    """Connections above the limits."""

    async def test_connections_above_the_limit_wait_and_are_served_in_order(self) -> None:
        bench = await self.bench(MitmLimits(connections=2, waiting=2))
        served = [await bench.tunnel() for _ in range(2)]
        first, second = await self.waiting(bench, 1), await self.waiting(bench, 2)
        served[0].close()
        await until(lambda: b"200" in first.got, "the answer to the first that waits")
        self.assertEqual((bytes(second.got), bench.connections()), (b"", 2))
        served[1].close()
        await until(lambda: b"200" in second.got, "the answer to the second")

    async def test_connections_that_wait_have_no_time_limit_before_they_begin(self) -> None:
        bench = await self.bench(MitmLimits(connections=1))
        served = await bench.tunnel()
        late = await self.waiting(bench, 1)
        bench.later(bench.limits.head_seconds)
        served.close()
        await until(lambda: b"200" in late.got, "the answer to the one that waits")

    async def test_too_many_that_wait_are_closed(self) -> None:
        bench = await self.bench(MitmLimits(connections=1, waiting=1))
        await bench.tunnel()
        await self.waiting(bench, 1)
        late = await bench.client()
        await late.closed()
        self.assertEqual(late.got, b"")

    async def test_a_connection_that_goes_away_while_it_waits_makes_room(self) -> None:
        bench = await self.bench(MitmLimits(connections=1, waiting=2))
        served = await bench.tunnel()
        gone, late = await self.waiting(bench, 1), await self.waiting(bench, 2)
        gone.close()
        served.close()
        await until(lambda: b"200" in late.got, "the answer to the other")

    async def test_the_end_of_the_proxy_ends_those_that_wait(self) -> None:
        bench = await self.bench(MitmLimits(connections=1))
        await bench.tunnel()
        late = await self.waiting(bench, 1)
        await bench.proxy.stop()
        await late.closed()
        self.assertEqual(late.got, b"")

    async def waiting(self, bench: Bench, count: int) -> Client:
        """:returns: a client that asks for a tunnel while there are so many that wait, this one included."""
        client = await bench.client()
        client.send(CONNECT)
        await until(lambda: len(bench.proxy._shared.connections._waiting) == count, "the queue")
        return client


class TCPTests(Base):
    """Agents that come over TCP."""

    async def test_agents_are_accepted_on_a_listening_socket_that_was_made_elsewhere(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply(b"by TCP"))
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        address = listening.getsockname()
        await bench.proxy.accept(listening)
        client = Client(bench.socket, bench.authority.certificate_pem)
        bench.clients.append(client)
        await connectProtocol(TCP4ClientEndpoint(the_reactor, *address), client.plain)
        await client.tunnel()
        client.send(bench.request())
        self.assertEqual((await client.response())[2], b"by TCP")
        await bench.proxy.stop()
        await client.closed()
        probe: Any = socket.socket()
        with probe, self.assertRaises(ConnectionRefusedError):
            probe.connect(address)
