"""Providers that are reached through an upstream proxy."""

from __future__ import annotations

from typing import Any

from ironcurtain.home.network_section import Network
from ironcurtain.http.upstream_proxies import UpstreamProxies
from tests.http.proxy_stub import WANTS_BASIC, ProxyStub
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.support import Base, Bench
from tests.mitm_proxy.test_providers_down import refusal
from tests.mitm_proxy.waiting import the_reactor
from tests.network.names import Names


class UpstreamProxyTests(Base):
    async def behind(self, proxy: ProxyStub) -> tuple[Bench, Any]:
        """:returns: a bench whose provider only the proxy finds, and a client of it."""
        bench = Bench(names="model.example")
        self.addCleanup(bench.stopped)
        bench.resolver = Names()
        bench.origin.answer = lambda origin: origin.send(reply())
        port = await proxy.start()
        self.addCleanup(proxy.stop)
        bench.proxies = UpstreamProxies(the_reactor, Network(proxy=f"http://me@127.0.0.1:{port}"), {})
        await bench.start(base_url="https://model.example")
        proxy.ports["model.example"] = bench.port
        return bench, await bench.tunnel()

    async def test_requests_are_answered_over_one_tunnel(self) -> None:
        proxy = ProxyStub()
        bench, client = await self.behind(proxy)
        for _ in range(2):
            client.send(bench.request())
            self.assertEqual((await client.response())[0], 200)
        self.assertEqual([head.split("\r\n")[0] for head in proxy.heads], ["CONNECT model.example:443 HTTP/1.1"])

    async def test_refusal_of_the_proxy_is_told_to_the_agent(self) -> None:
        proxy = ProxyStub()
        proxy.answer = lambda head: WANTS_BASIC
        bench, client = await self.behind(proxy)
        client.send(bench.request())
        self.assertIn(
            "refuses the user or the password (HTTP 407): correct the user in network.proxy", await refusal(client)
        )
        self.assertEqual(bench.origin.connections, [])
