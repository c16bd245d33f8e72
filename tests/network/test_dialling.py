"""Connections of a dialer: whom it asks for addresses, and which of them it dials."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.error import ConnectionRefusedError, DNSLookupError
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import AccumulatingProtocol, MemoryReactorClock
from twisted.protocols.wire import Echo
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.network.dialling import ATTEMPTS, AddressRefused, Dialer
from tests.http.direct import DIRECT
from tests.mitm_proxy.waiting import the_reactor, until
from tests.network.names import Names, SilentNames

LOOPBACK = """
127.0.0.1 0x7f.1 127.1 2130706433 017700000001 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 64:ff9b::7f00:1 2002:7f00:1::
"""
"""Ways to write an address of this machine, each of which some program understands."""


class VettingTests(SynchronousTestCase):
    """Which addresses are dialled, in a reactor where nothing answers."""

    def setUp(self) -> None:
        self.reactor = cast(Any, MemoryReactorClock())
        self.names = Names()
        self.dialer = Dialer(self.reactor, self.names, DIRECT)

    def connect(self, host: str, **options: Any) -> Deferred[None]:
        """:returns: the attempt to reach port 443 of this host."""
        return Deferred.fromCoroutine(self.dialer.connect(host, 443, Protocol(), **options))

    def dialled(self) -> list[str]:
        """:returns: the addresses dialled so far, of which the last is refused now."""
        dialled = [client[0] for client in self.reactor.tcpClients]
        self.reactor.tcpClients[-1][2].clientConnectionFailed(None, Failure(ConnectionRefusedError()))
        return dialled

    def test_an_allowed_address_is_dialled_and_not_the_name(self) -> None:
        self.names.addresses = ("10.0.0.1", "1.1.1.1")
        attempt = self.connect("a.example")
        self.assertNoResult(attempt)
        self.assertEqual([client[:2] for client in self.reactor.tcpClients], [("1.1.1.1", 443)])

    def test_name_with_private_addresses_only_is_refused(self) -> None:
        self.names.addresses = ("169.254.169.254", "fd00::1")
        refused = self.failureResultOf(self.connect("metadata.example"), AddressRefused)
        self.assertIn("metadata.example has the address 169.254.169.254", str(refused.value))
        self.assertEqual(self.reactor.tcpClients, [])

    def test_name_is_resolved_and_vetted_anew_at_each_connection(self) -> None:
        self.names.addresses = ("1.1.1.1",)
        attempt = self.connect("rebinding.example")
        self.names.addresses = ("127.0.0.1",)
        self.failureResultOf(self.connect("rebinding.example"), AddressRefused)
        self.assertEqual(self.dialled(), ["1.1.1.1"])
        self.failureResultOf(attempt, ConnectionRefusedError)
        self.assertEqual(self.names.asked, ["rebinding.example"] * 2)

    def test_unusual_spellings_of_loopback_addresses_are_refused_unresolved(self) -> None:
        for written in LOOPBACK.split():
            refused = self.failureResultOf(self.connect(written), AddressRefused)
            self.assertTrue(str(refused.value).startswith(f"{written} "))
            self.assertIn("is not on the public internet", str(refused.value))
        self.assertEqual((self.names.asked, self.reactor.tcpClients), ([], []))

    def test_invalid_host_is_neither_resolved_nor_dialled(self) -> None:
        for host in ("a\0.example", "", "a b", "[::1]", "fe80::1%eth0", "1.2.3.256", "a..b", "http://a"):
            self.failureResultOf(self.connect(host, private=True), DNSLookupError)
        self.assertEqual((self.names.asked, self.reactor.tcpClients), ([], []))

    def test_private_address_is_dialled_where_the_host_was_named(self) -> None:
        self.names.addresses = ("192.168.1.5",)
        attempt = self.connect("printer.lan", private=True)
        self.assertEqual(self.dialled(), ["192.168.1.5"])
        self.failureResultOf(attempt, ConnectionRefusedError)

    def test_only_the_first_addresses_are_tried(self) -> None:
        self.names.addresses = tuple(f"1.1.1.{number}" for number in range(1, 9))
        attempt = self.connect("a.example")
        for number in range(1, ATTEMPTS + 1):
            self.assertNoResult(attempt)
            self.assertEqual(len(self.dialled()), number)
        self.failureResultOf(attempt, ConnectionRefusedError)

    def test_name_without_an_address_cannot_be_found(self) -> None:
        self.failureResultOf(self.connect("nowhere.example"), DNSLookupError)

    def test_resolver_that_does_not_answer_is_given_up(self) -> None:
        self.dialer = Dialer(self.reactor, SilentNames(), DIRECT, seconds=7.0)
        attempt = self.connect("slow.example")
        self.reactor.advance(6.9)
        self.assertNoResult(attempt)
        self.reactor.advance(0.2)
        self.failureResultOf(attempt, TimeoutError)


class ConnectionTests(TestCase):
    async def test_protocol_gets_the_stream_of_the_first_address_that_answers(self) -> None:
        endpoint = TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1")
        port: Any = await endpoint.listen(Factory.forProtocol(Echo))
        self.addCleanup(port.stopListening)
        protocol: Any = AccumulatingProtocol()
        dialer = Dialer(the_reactor, Names("127.0.0.2", "127.0.0.1"), DIRECT)
        await dialer.connect("echo.example", port.getHost().port, protocol, private=True)
        protocol.transport.write(b"there and back")
        await until(lambda: protocol.data == b"there and back")
        protocol.transport.abortConnection()
        await until(lambda: protocol.closed)
