"""What a program that logs in can reach, over a real socket."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP4ServerEndpoint, UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.testing import StringTransport
from twisted.protocols.wire import Echo
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.container_agent.login_proxy import LoginProxy
from ironcurtain.services import unix_socket
from tests.http.test_client_hello import hello
from tests.mitm_proxy.waiting import the_reactor, until

HOSTS = ("auth.example.com", "api.example.com")


class StubDialer:
    """
    Connects to one port of this machine, whatever host is asked for.

    :ivar asked: hosts and ports.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[tuple[str, int]] = []

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """See :class:`ironcurtain.network.relay.Dialer`."""
        self.asked.append((host, port))
        await connectProtocol(TCP4ClientEndpoint(the_reactor, "127.0.0.1", self.port), protocol)


class Client(Protocol):
    """:ivar got: what came; :ivar lost: whether the connection ended."""

    transport: Any

    def __init__(self) -> None:
        self.got, self.lost = b"", False

    def dataReceived(self, data: bytes) -> None:
        """More came."""
        self.got += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """It ended."""
        self.lost = True


class LoginProxyTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)
        far: Any = await TCP4ServerEndpoint(the_reactor, 0, interface="127.0.0.1").listen(Factory.forProtocol(Echo))
        self.addCleanup(far.stopListening)
        self.dialer, self.told = StubDialer(far.getHost().port), list[str]()
        self.proxy = LoginProxy(HOSTS, self.dialer, self.told.append)
        listener = await unix_socket.listen(self.directory / "s", self.proxy)
        self.addCleanup(lambda: Deferred.fromCoroutine(listener.stop()))
        self.addCleanup(self.proxy.close)

    async def client(self, sent: bytes) -> Client:
        client = Client()
        await connectProtocol(UNIXClientEndpoint(the_reactor, str(self.directory / "s")), client)
        self.addCleanup(client.transport.abortConnection)
        client.transport.write(sent)
        return client

    async def refused(self, sent: bytes) -> str:
        client = await self.client(sent)
        await until(lambda: client.lost)
        self.assertEqual(self.dialer.asked, [])
        return client.got.decode()

    async def test_bytes_pass_to_and_from_an_allowed_host(self) -> None:
        client = await self.client(b"CONNECT auth.example.com:443 HTTP/1.1\r\nHost: auth.example.com:443\r\n\r\n")
        await until(lambda: b"\r\n\r\n" in client.got)
        self.assertTrue(client.got.startswith(b"HTTP/1.1 200 "))
        client.got = b""
        data = hello("auth.example.com") + bytes(range(256)) * 4096
        client.transport.write(data[:50])
        client.transport.write(data[50:])
        await until(lambda: len(client.got) == len(data))
        self.assertEqual((client.got, self.dialer.asked), (data, [("auth.example.com", 443)]))
        client.transport.loseConnection()
        await until(lambda: client.lost)

    async def test_other_hosts_ports_and_addresses_are_refused_before_they_are_resolved(self) -> None:
        for target in (
            "evil.example.com:443",
            "auth.example.com:80",
            "auth.example.com.:443",
            "xauth.example.com:443",
            "127.0.0.1:443",
            "[::1]:443",
        ):
            said = await self.refused(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            self.assertTrue(said.startswith("HTTP/1.1 403 "), target)
            self.assertIn("IronCurtain: a login reaches auth.example.com, api.example.com only", said)
        mismatch = b"CONNECT auth.example.com:443 HTTP/1.1\r\nHost: evil.example.com\r\n\r\n"
        self.assertTrue((await self.refused(mismatch)).startswith("HTTP/1.1 403 "))

    async def test_other_requests_are_refused(self) -> None:
        for sent in (b"GET http://auth.example.com/ HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"x" * 9000):
            self.assertTrue((await self.refused(sent)).startswith("HTTP/1.1 400 "), sent[:20])
        early = b"CONNECT auth.example.com:443 HTTP/1.1\r\n\r\nearly"
        self.assertTrue((await self.refused(early)).startswith("HTTP/1.1 403 "))

    async def test_handshake_that_names_another_host_or_none_reaches_nobody(self) -> None:
        for sent in (hello("evil.example.com"), hello("api.example.com"), hello(None), b"GET / HTTP/1.1\r\n\r\n"):
            self.assertEqual(await self.echoed(sent), b"")

    async def echoed(self, sent: bytes) -> bytes:
        """:returns: what the server sent back before the connection ended."""
        client = await self.client(b"CONNECT auth.example.com:443 HTTP/1.1\r\n\r\n")
        await until(lambda: b"\r\n\r\n" in client.got)
        client.transport.write(sent)
        await until(lambda: client.lost)
        return client.got.partition(b"\r\n\r\n")[2]

    async def test_host_that_cannot_be_reached_is_told(self) -> None:
        self.dialer.port = 1
        client = await self.client(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
        await until(lambda: client.lost)
        self.assertTrue(client.got.startswith(b"HTTP/1.1 502 "))
        (told,) = self.told
        self.assertTrue(told.startswith("api.example.com cannot be reached: "))

    async def test_closing_the_door_ends_open_connections(self) -> None:
        client = await self.client(b"CONNECT auth.example.com:443 HTTP/1.1\r\n\r\n")
        await until(lambda: client.got)
        self.proxy.close()
        await until(lambda: client.lost)


class ParserTests(SynchronousTestCase):
    @given(st.binary(max_size=120), st.binary(max_size=40))
    def test_any_bytes_are_answered_or_waited_for_and_nothing_is_dialled(self, first: bytes, second: bytes) -> None:
        class Refusing:
            async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
                raise ConnectError

        told: list[str] = []
        connection = LoginProxy(HOSTS, Refusing(), told.append).buildProtocol(None)
        transport = StringTransport()
        connection.makeConnection(transport)
        connection.dataReceived(first)
        connection.dataReceived(second)
        self.assertEqual(told, [])
        if transport.value():
            self.assertRegex(transport.value(), rb"\AHTTP/1\.1 40[03] ")
