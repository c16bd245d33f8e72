"""Gateways that a person put in a provider's place: only they may be on this machine or in a network of ours."""

from __future__ import annotations

from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory

from ironcurtain.home.sections import Provider
from ironcurtain.providers.rules import provider_rules
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.origin import Origin, OriginServer
from tests.mitm_proxy.support import REAL_KEY, Base, Bench
from tests.mitm_proxy.test_providers_down import refusal
from tests.mitm_proxy.waiting import the_reactor, until
from tests.network.names import Names


class PlainServer(OriginServer):
    """The same without TLS."""

    async def start(self, *names: str) -> int:
        """:returns: the port."""
        endpoint = TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1")
        self._port = await endpoint.listen(Factory.forProtocol(lambda: Origin(self)))
        return int(self._port.getHost().port)


class PlainTests(Base):
    """A gateway on a loopback address, which needs no TLS."""

    async def gateway(self, port: int = 0) -> Bench:
        """:returns: a bench with one in the provider's place."""
        bench = Bench()
        self.addCleanup(bench.stopped)
        bench.origin = PlainServer()
        listening = await bench.origin.start()
        table = Provider(base_url=f"http://127.0.0.1:{port or listening}/gate")
        await bench.start_proxy(provider_rules({"anthropic": table}, ["anthropic"]))
        return bench

    async def test_the_request_arrives_with_the_real_key(self) -> None:
        bench = await self.gateway()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        for _ in range(2):
            client.send(bench.request())
            self.assertEqual((await client.response())[0], 200)
        self.assertEqual(len(bench.origin.connections), 1, "it was used again")
        self.assertTrue(bench.origin.got.startswith(b"POST /gate/v1/messages HTTP/1.1\r\nhost: 127.0.0.1:"))
        self.assertIn(f"x-api-key: {REAL_KEY}\r\n".encode(), bench.origin.got)
        self.assertNotIn(bench.key.encode(), bench.origin.got)

    async def test_nobody_listens(self) -> None:
        bench = await self.gateway(port=1)
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("127.0.0.1 cannot be reached", await refusal(client))

    async def test_it_closes_without_an_answer(self) -> None:
        bench = await self.gateway()
        bench.origin.answer = lambda origin: origin.abort()
        client = await bench.tunnel()
        client.send(bench.request())
        self.assertIn("closed the connection before its answer was whole", await refusal(client))

    async def test_much_in_both_directions(self) -> None:
        bench = await self.gateway()
        length = 4 * 1024 * 1024
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % length

        def when_whole(origin: Origin) -> None:
            if len(origin.got) > 1024 * 1024 and not sent:
                sent.append(True)
                origin.send(answer + bytes(length))

        sent: list[bool] = []
        bench.origin.answer = when_whole
        client = await bench.tunnel()
        client.send(bench.request(b'{"model": "m", "messages": "' + b"x" * 1024 * 1024 + b'"}'))
        status, _, body = await client.response()
        self.assertEqual((status, len(body)), (200, length))

    async def test_an_unused_connection_that_speaks_or_is_old_is_closed(self) -> None:
        bench = await self.gateway()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        await client.response()
        bench.origin.connections[-1].send(b"HTTP/1.1 200 OK\r\n\r\n")
        await until(lambda: bench.origin.connections[-1].lost, "the end of a connection that spoke unasked")
        client.send(bench.request())
        await client.response()
        bench.later(bench.limits.provider_idle_seconds)
        await until(lambda: bench.origin.connections[-1].lost, "the end of the idle connection")


class AddressTests(Base):
    """Which addresses may be dialled."""

    async def dialling(self, tables: dict[str, Provider], *addresses: str) -> Bench:
        """:returns: a bench whose providers all have these addresses."""
        bench = Bench()
        self.addCleanup(bench.stopped)
        bench.resolver = Names(*addresses)
        await bench.origin.start("localhost")
        await bench.start_proxy(provider_rules(tables, ["anthropic", "openai"]))
        bench.reactor.connectTCP = lambda host, port, *more, **options: bench.dialled.append((host, port))
        return bench

    async def test_a_name_of_the_persons_own_may_be_inside(self) -> None:
        bench = await self.dialling({"anthropic": Provider(base_url="https://llm.corp.example:8443")}, "10.0.0.1")
        await bench.tunnel()
        await until(lambda: bench.dialled)
        self.assertEqual(bench.dialled, [("10.0.0.1", 8443)])

    async def test_also_under_the_providers_own_name(self) -> None:
        """A name service of ours may have an inner address for it, and base_url says that this is meant."""
        bench = await self.dialling({"anthropic": Provider(base_url="https://api.anthropic.com")}, "10.0.0.1")
        await bench.tunnel()
        await until(lambda: bench.dialled)
        self.assertEqual(bench.dialled, [("10.0.0.1", 443)])

    async def test_no_other_provider_may(self) -> None:
        bench = await self.dialling({"anthropic": Provider(base_url="https://llm.corp.example")}, "10.0.0.1")
        client = await bench.tunnel(authority="api.openai.com:443", name="api.openai.com")
        key = f"authorization: Bearer {bench.proxy.fakes['openai'].secret.reveal()}"
        body = b'{"model": "m", "input": "x"}'
        head = f"POST /v1/responses HTTP/1.1\r\nhost: api.openai.com\r\n{key}\r\ncontent-type: application/json\r\n"
        client.send(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.assertIn("set it as base_url", await refusal(client))
        self.assertEqual(bench.dialled, [])
