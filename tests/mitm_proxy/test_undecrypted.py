"""Hosts whose connections are passed on as they are."""

from __future__ import annotations

from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.open_hosts import DENIED, OpenBase, get, port_of
from tests.mitm_proxy.support import Bench
from tests.mitm_proxy.test_responders import StubResponder
from tests.mitm_proxy.waiting import until


class TunnelTests(OpenBase):
    """On real sockets."""

    async def start(self) -> tuple[Bench, str]:
        """:returns: a bench that does not decrypt its origin, and the origin's host with its port."""
        bench = await self.open_bench(undecrypted=("localhost", "*.example"))
        return bench, f"localhost:{port_of(bench.origin)}"

    async def client(self, bench: Bench, host: str, name: str = "localhost") -> Client:
        """:returns: a client that trusts the origin only, in a tunnel."""
        client = await Client(bench.socket, (bench.top / "origin.pem").read_bytes()).connect()
        bench.clients.append(client)
        return await client.tunnel(authority=host, name=name)

    async def test_client_speaks_tls_with_the_host_itself(self) -> None:
        bench, host = await self.start()
        bench.origin.answer = lambda origin: origin.send(reply(bytes(1_000_000)))
        client = await self.client(bench, host)
        client.send(get(host))
        self.assertEqual(len((await client.response())[2]), 1_000_000)
        self.assertEqual(bench.judge.asked, [("connect", "localhost", port_of(bench.origin))])
        client.close()
        await until(lambda: bench.origin.connections[0].lost, "the end at the host")
        await until(lambda: bench.connections() == 0, "the end at the proxy")

    async def test_open_tunnel_is_reset_when_its_approval_is_taken_back(self) -> None:
        bench, host = await self.start()
        client = await self.client(bench, host)
        client.send(get(host))
        await client.response()
        bench.judge.held.recheck(lambda party, name, port: False)
        await client.closed()
        await until(lambda: bench.origin.connections[0].lost, "the end at the host")
        await until(lambda: bench.connections() == 0, "the end at the proxy")

    async def test_refused_connection_is_answered_at_connect(self) -> None:
        bench, host = await self.start()
        bench.judge.answers["connect"] = DENIED
        client = await bench.client()
        client.send(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
        status, _, body = await client.response()
        self.assertEqual((status, body), (403, b"IronCurtain: localhost is not open: ask the user\n"))
        await client.closed()
        self.assertEqual(bench.origin.connections, [])

    async def test_registry_stays_answered_here_although_a_pattern_covers_its_host(self) -> None:
        responder = StubResponder(b"filtered")
        bench = await self.open_bench(undecrypted=("*.example",), responders={("packages.example", 443): responder})
        client = await bench.tunnel(authority="packages.example:443", name="packages.example")
        client.send(get("packages.example"))
        self.assertEqual((await client.response())[2], b"filtered")
        self.assertEqual(bench.judge.asked, [])

    async def test_other_names_in_the_handshake_reset_the_connection(self) -> None:
        bench, host = await self.start()
        for name in ("other.example", ""):
            client = await self.client(bench, host, name)
            await client.closed()
            record = bench.records("model-request")[-1]
            self.assertEqual((record["rule"], record["serverName"]), ("host-mismatch", name))
        client = await bench.client()
        client.send(f"CONNECT {host} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode())
        await client.closed()
        self.assertEqual(bench.origin.connections, [])

    async def test_private_address_that_nobody_named_is_not_dialled(self) -> None:
        bench, host = await self.start()
        bench.judge.private = False
        client = await self.client(bench, host)
        await client.closed()
        self.assertEqual(bench.origin.connections, [])

    async def test_client_that_goes_away_withdraws_the_question(self) -> None:
        bench, host = await self.start()
        bench.judge.ask("connect")
        client = await bench.client()
        client.send(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
        await until(lambda: bench.judge.asked, "the question")
        client.close()
        await until(lambda: bench.judge.withdrawn == 1 and bench.connections() == 0, "the withdrawal")

    async def test_handshake_that_does_not_come_ends_the_connection(self) -> None:
        bench, host = await self.start()
        client = await bench.client()
        client.send(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
        await until(lambda: b"200" in client.got, "the tunnel")
        bench.later(bench.limits.head_seconds)
        await client.closed()
