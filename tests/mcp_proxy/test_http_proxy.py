"""Servers behind HTTP that are reached through an upstream proxy."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ironcurtain.home.network_section import Network
from ironcurtain.home.sections import SecretSource
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.mcp_proxy.servers_config import HttpServer
from ironcurtain.secrets.redaction import Secret
from tests.audit.doubles import scratch
from tests.http.proxy_stub import WANTS_BASIC, ProxyStub
from tests.kerberos import Realm
from tests.mcp_proxy.support import the_reactor, until
from tests.mcp_proxy.test_calls import text
from tests.mcp_proxy.test_http import LyingCase

BASIC = "Proxy-Authorization: Basic bWU6cHc="


class ProxiedTests(LyingCase):
    async def server(self, proxy: ProxyStub, user: str = "me@", **settings: Any) -> tuple[HttpServer, UpstreamProxies]:
        """:returns: a server that only the proxy finds, and how to reach the proxy."""
        there = self.lying("long", names=("far.example",))
        url = there.url.reveal()
        proxy.ports["far.example"] = urlsplit(url).port or 0
        port = await proxy.start("localhost")
        self.addCleanup(proxy.stop)
        ca_file = Path(scratch(self), "proxy-ca.pem")
        ca_file.write_bytes(proxy.authority.pem)
        network = Network(proxy=f"https://{user}localhost:{port}", proxy_ca_file=str(ca_file), **settings)
        proxies = UpstreamProxies(the_reactor, network, {"PW": "pw"})
        return HttpServer("far", Secret(url.replace("127.0.0.1", "far.example")), ca_file=self.ca_file), proxies

    async def said(self, server: HttpServer, proxies: UpstreamProxies) -> str:
        """:returns: what the log says of a server that cannot be reached."""
        bench = await self.bench(server, proxies=proxies)
        await until(lambda: bool(bench.errors), "a line in the log")
        return "\n".join(line for _, line in bench.errors)

    async def test_calls_are_answered_through_the_proxy(self) -> None:
        proxy = ProxyStub()
        proxy.answer = lambda head: b"" if BASIC in head else WANTS_BASIC
        server, proxies = await self.server(proxy, proxy_password=SecretSource(env="PW"))
        bench = await self.bench(server, proxies=proxies)
        await bench.proxy.gate.settled(60)
        self.assertEqual(len(text(await (await bench.agent()).call("far__echo"))), 100_000)
        self.assertTrue(all(head.startswith("CONNECT far.example:") for head in proxy.heads))

    async def test_each_tunnel_has_a_kerberos_token_of_its_own(self) -> None:
        realm, proxy, heads = Realm(self), ProxyStub(), list[str]()
        realm.enter()
        realm.log_in()

        def answer(head: str) -> bytes:
            heads.append(head)
            realm.accept(head)
            return b""

        proxy.answer = answer
        server, proxies = await self.server(proxy, "", proxy_auth="negotiate")
        bench = await self.bench(server, proxies=proxies)
        await bench.proxy.gate.settled(60)
        self.assertEqual(len(text(await (await bench.agent()).call("far__echo"))), 100_000)
        self.assertEqual(len(set(heads)), len(proxy.connections))

    async def test_refusal_and_absence_of_the_proxy_are_told_apart_from_those_of_the_server(self) -> None:
        proxy = ProxyStub()
        proxy.answer = lambda head: WANTS_BASIC
        server, proxies = await self.server(proxy)
        self.assertIn("refuses the user or the password (HTTP 407)", await self.said(server, proxies))
        network = Network(proxy="http://localhost:1")
        said = await self.said(server, UpstreamProxies(the_reactor, network, {}))
        self.assertIn("the proxy http://localhost:1 (network.proxy in config.toml) cannot be reached", said)
        said = await self.said(server, UpstreamProxies(the_reactor, Network(), {"HTTPS_PROXY": "socks5://localhost"}))
        self.assertIn("HTTPS_PROXY: SOCKS proxies are not supported", said)
        self.assertEqual(self.liar.seen, [])
