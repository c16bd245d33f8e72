"""Connections of a dialer through an upstream proxy, with real sockets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import AccumulatingProtocol
from twisted.trial.unittest import TestCase

from ironcurtain.home.network_section import Network
from ironcurtain.home.sections import SecretSource
from ironcurtain.http.upstream_proxies import ProxyFailed, UpstreamProxies
from ironcurtain.network.dialling import AddressRefused, Dialer
from tests.http.proxy_stub import WANTS_BASIC, ProxyStub
from tests.mitm_proxy.waiting import the_reactor, until
from tests.network.names import Names

BASIC = "Proxy-Authorization: Basic bWU6cCA6dw==\r\n"
""""me:p :w"."""


class Greeting(Protocol):
    """A server that speaks first, and then repeats what it hears."""

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"hello ")

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)


class ProxiedTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        server: Any = await TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1").listen(
            Factory.forProtocol(Greeting)
        )
        self.addCleanup(server.stopListening)
        self.proxy = ProxyStub({"echo.example": server.getHost().port, "10.0.0.9": server.getHost().port})
        self.names = Names("127.0.0.1")
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.connected: list[Any] = []

    async def serve(self, *names: str) -> str:
        """:returns: host and port of the proxy, which has TLS if it has names."""
        port = await self.proxy.start(*names)
        self.addCleanup(self.proxy.stop)
        return f"proxy.example:{port}"

    def dialer(self, seconds: float = 10.0, **settings: Any) -> Dialer:
        """:returns: a dialer with these settings."""
        environ = {"PATH": os.environ["PATH"], "TOP": str(self.top)}
        proxies = UpstreamProxies(the_reactor, Network(**settings), environ)
        return Dialer(the_reactor, self.names, proxies, seconds)

    async def echo(self, dialer: Dialer, host: str = "echo.example", **options: Any) -> None:
        """Send something there and back."""
        protocol: Any = AccumulatingProtocol()
        await dialer.connect(host, 443, protocol, **options)
        protocol.transport.write(b"there")
        await until(lambda: protocol.data == b"hello there")
        protocol.transport.abortConnection()
        await until(lambda: protocol.closed)

    async def refused(self, dialer: Dialer) -> str:
        """:returns: why there is no connection."""
        protocol: Any = AccumulatingProtocol()
        with self.assertRaises(ProxyFailed) as caught:
            await dialer.connect("echo.example", 443, protocol)
        self.assertEqual(protocol.made, 0)
        return str(caught.exception)

    async def test_proxy_resolves_the_name(self) -> None:
        await self.echo(self.dialer(proxy=await self.serve()))
        self.assertEqual(self.names.asked, ["proxy.example"])
        self.assertEqual(self.proxy.heads, ["CONNECT echo.example:443 HTTP/1.1\r\nHost: echo.example:443\r\n\r\n"])

    async def test_private_address_is_refused_without_asking_the_proxy_unless_named(self) -> None:
        dialer = self.dialer(proxy=await self.serve())
        for host in ("10.0.0.9", "0xa.9", "169.254.169.254", "::ffff:10.0.0.9"):
            with self.assertRaises(AddressRefused):
                await dialer.connect(host, 443, Protocol())
        self.assertEqual((self.proxy.connections, self.names.asked), ([], []))
        await self.echo(dialer, "10.0.0.9", private=True)

    async def test_excepted_host_is_resolved_and_vetted_here(self) -> None:
        dialer = self.dialer(proxy=await self.serve(), no_proxy=("echo.example",))
        with self.assertRaises(AddressRefused):
            await dialer.connect("a.echo.example", 443, Protocol())
        self.assertEqual((self.proxy.connections, self.names.asked), ([], ["a.echo.example"]))

    async def test_connection_to_the_proxy_itself_can_have_tls(self) -> None:
        where = await self.serve("proxy.example")
        ca_file = self.top / "ca.pem"
        ca_file.write_bytes(self.proxy.authority.pem)
        await self.echo(self.dialer(proxy=f"https://{where}", proxy_ca_file=str(ca_file)))

    async def test_proxy_with_a_wrong_certificate_gets_no_request(self) -> None:
        where = await self.serve("other.example")
        ca_file = self.top / "ca.pem"
        ca_file.write_bytes(self.proxy.authority.pem)
        said = await self.refused(self.dialer(proxy=f"https://me@{where}", proxy_ca_file=str(ca_file)))
        self.assertIn("it is for another name. Nothing was sent", said)
        self.assertIn("network.proxy_ca_file", await self.refused(self.dialer(proxy=f"https://me@{where}")))
        self.assertEqual(self.proxy.heads, [])

    async def test_password_is_fetched_once_and_sent(self) -> None:
        where = await self.serve()
        self.proxy.answer = lambda head: b"" if BASIC in head else WANTS_BASIC
        command = f"sh -c 'echo x >> {self.top}/runs; echo \"p :w\"'"
        dialer = self.dialer(proxy=f"http://me@{where}", proxy_password=SecretSource(command=command))
        echoes = [Deferred.fromCoroutine(self.echo(dialer)) for _ in range(3)]
        await gatherResults(echoes)
        self.assertEqual((self.top / "runs").read_text(), "x\n")

    async def test_password_that_cannot_be_read_is_no_reason_to_go_without(self) -> None:
        where = await self.serve()
        dialer = self.dialer(proxy=f"http://me@{where}", proxy_password=SecretSource(env="MISSING"))
        self.assertIn("network.proxy_password: the environment variable MISSING", await self.refused(dialer))
        self.assertEqual(self.proxy.heads, [])

    async def test_refusals_are_explained(self) -> None:
        dialer = self.dialer(proxy=await self.serve())
        self.proxy.answer = lambda head: WANTS_BASIC
        self.assertIn("wants a user and a password (HTTP 407)", await self.refused(dialer))
        self.proxy.answer = lambda head: b"HTTP/1.1 403 Forbidden\r\n\r\n"
        self.assertIn("refuses the connection to echo.example:443 (HTTP 403)", await self.refused(dialer))

    async def test_proxy_that_cannot_be_reached_or_is_silent_is_named(self) -> None:
        said = await self.refused(self.dialer(proxy="http://proxy.example:1"))
        self.assertIn("the proxy http://proxy.example:1 (network.proxy in config.toml) cannot be reached", said)
        self.proxy.answer = lambda head: None
        dialer = self.dialer(seconds=1.0, proxy=await self.serve())
        self.assertIn("cannot be reached: no answer in time", await self.refused(dialer))
        await until(lambda: self.proxy.connections[0].lost.called)

    async def test_unusable_variable_is_named_and_nothing_is_dialled(self) -> None:
        proxies = UpstreamProxies(the_reactor, Network(), {"HTTPS_PROXY": "socks5://proxy.example"})
        dialer = Dialer(the_reactor, self.names, proxies, 10.0)
        self.assertIn("HTTPS_PROXY: SOCKS proxies are not supported", await self.refused(dialer))
        self.assertEqual(self.names.asked, [])
