"""Requests to servers, directly and through an upstream proxy."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase
from twisted.web.http_headers import Headers

from ironcurtain.home.network_section import Network
from ironcurtain.http.connections import RequestConnectionPool
from ironcurtain.http.outbound import Outbound
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.upstream_proxies import ProxyFailed, UpstreamProxies
from tests.http.proxy_stub import WANTS_BASIC, ProxyStub
from tests.mitm_proxy.origin import Origin, OriginServer
from tests.mitm_proxy.waiting import the_reactor, until


class OutboundTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.server = OriginServer()
        self.server.answer = self.answer
        self.port = await self.server.start("api.example", "localhost")
        self.addCleanup(self.server.stop)
        self.proxy = ProxyStub({"api.example": self.port, "127.0.0.1": self.port})
        self.proxy_port = await self.proxy.start("localhost")
        self.addCleanup(self.proxy.stop)
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.top / "ca.pem").write_bytes(self.server.authority.pem)
        (self.top / "proxy-ca.pem").write_bytes(self.proxy.authority.pem)

    def answer(self, origin: Origin) -> None:
        """Answer a whole request."""
        if origin.got.endswith(b"{}"):
            origin.send(b"HTTP/1.1 299 x\r\ncontent-length: 0\r\n\r\n")

    async def post(self, url: str, **settings: Any) -> int:
        """:returns: the status of the response."""
        proxies = UpstreamProxies(the_reactor, Network(**settings), {})
        outbound = Outbound(the_reactor, VerifyingPolicy(str(self.top / "ca.pem")), proxies)
        connections = RequestConnectionPool(the_reactor)
        try:
            headers = Headers({"authorization": ["Bearer CANARY"]})
            response = await outbound.request(connections, "POST", url, headers, b"{}")
            return int(response.code)
        finally:
            connections.drop()
            await until(lambda: all(client.lost.called for client in self.proxy.connections))

    def by_proxy(self) -> dict[str, Any]:
        """:returns: the settings for the proxy, with TLS to itself."""
        return {"proxy": f"https://localhost:{self.proxy_port}", "proxy_ca_file": str(self.top / "proxy-ca.pem")}

    async def test_request_goes_through_the_proxy_encrypted(self) -> None:
        self.assertEqual(await self.post("https://api.example:8443/v1?x", **self.by_proxy()), 299)
        self.assertTrue(self.server.got.startswith(b"POST /v1?x HTTP/1.1\r\n"))
        self.assertEqual(self.proxy.heads, ["CONNECT api.example:8443 HTTP/1.1\r\nHost: api.example:8443\r\n\r\n"])

    async def test_excepted_host_and_this_machine_are_reached_directly(self) -> None:
        url = f"https://localhost:{self.port}/"
        self.assertEqual(await self.post(url), 299)
        self.assertEqual(await self.post(url, **self.by_proxy()), 299)
        self.assertEqual(self.proxy.connections, [])

    async def test_refusal_of_the_proxy_is_said_and_the_server_gets_nothing(self) -> None:
        self.proxy.answer = lambda head: WANTS_BASIC
        with self.assertRaisesRegex(ProxyFailed, "wants a user and a password"):
            await self.post("https://api.example/", **self.by_proxy())
        self.assertEqual(self.server.connections, [])

    async def test_unusable_proxy_is_an_error_and_not_a_direct_connection(self) -> None:
        proxies = UpstreamProxies(the_reactor, Network(), {"https_proxy": "socks5://localhost"})
        outbound = Outbound(the_reactor, VerifyingPolicy(""), proxies)
        with self.assertRaisesRegex(ProxyFailed, "SOCKS proxies are not supported"):
            await outbound.request(RequestConnectionPool(the_reactor), "GET", "https://api.example/", Headers())
