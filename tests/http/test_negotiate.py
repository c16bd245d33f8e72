"""Kerberos at an upstream proxy: a realm, and a real proxy that wants its tickets."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import AccumulatingProtocol
from twisted.trial.unittest import TestCase

from ironcurtain.home.network_section import Network
from ironcurtain.http.upstream_proxies import ProxyFailed, UpstreamProxies
from ironcurtain.network.dialling import Dialer
from tests.http.proxy_stub import ProxyStub
from tests.kerberos import Realm
from tests.mitm_proxy.waiting import the_reactor, until
from tests.network.names import Names


class Greeting(Protocol):
    """Says hello."""

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"hello")


class KerberosTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.realm = Realm(self)
        self.realm.enter()
        server: Any = await TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1").listen(
            Factory.forProtocol(Greeting)
        )
        self.addCleanup(server.stopListening)
        self.far = int(server.getHost().port)

    def dialer(self, port: int, host: str = "localhost") -> Dialer:
        """:returns: a dialer that uses a proxy on this port."""
        network = Network(proxy=f"http://{host}:{port}", proxy_auth="negotiate")
        return Dialer(the_reactor, Names("127.0.0.1"), UpstreamProxies(the_reactor, network, {}), 20.0)

    async def greeted(self, dialer: Dialer) -> None:
        """Make a connection through the proxy."""
        protocol: Any = AccumulatingProtocol()
        await dialer.connect("echo.example", self.far, protocol)
        await until(lambda: protocol.data == b"hello")
        protocol.transport.abortConnection()
        await until(lambda: protocol.closed)

    async def refused(self, dialer: Dialer) -> str:
        """:returns: why there is no connection."""
        with self.assertRaises(ProxyFailed) as caught:
            await self.greeted(dialer)
        return str(caught.exception)

    async def test_each_connection_has_a_token_of_the_users_ticket(self) -> None:
        dialer = self.dialer(self.realm.squid())
        self.assertIn("the Kerberos ticket is missing: run kinit", await self.refused(dialer))
        self.realm.log_in()
        await gatherResults([Deferred.fromCoroutine(self.greeted(dialer)) for _ in range(3)])
        await until(lambda: len(self.realm.users()) == 3)
        self.assertEqual(self.realm.users(), ["me@IRON.TEST"] * 3)

    async def test_proxy_that_the_realm_does_not_know_gets_no_token(self) -> None:
        self.realm.log_in()
        said = await self.refused(self.dialer(1, "other.example"))
        self.assertRegex(said, r"http://other\.example:1 \(network\.proxy .* cannot be used: Kerberos gives no ticket")

    async def test_proxy_that_sends_a_proof_must_have_the_services_key(self) -> None:
        self.realm.log_in()
        proxy = ProxyStub()
        port, proofs, forged = await proxy.start(), list[str](), list[str]()
        self.addCleanup(proxy.stop)

        def answer(head: str) -> bytes:
            proofs.append(self.realm.accept(head))
            proof = f"Proxy-Authentication-Info: Negotiate {(forged or proofs)[-1]}"
            return f"HTTP/1.1 200 OK\r\n{proof}\r\n\r\nhello".encode()

        proxy.answer = answer
        await self.greeted(self.dialer(port))
        for wrong in (proofs[0], "", "AAAA", "no base64", "oRQwEqADCgEBoQsGCSqGSIb3EgECAg=="):
            forged.append(wrong)
            self.assertIn("does not prove that the Kerberos ticket", await self.refused(self.dialer(port)))
