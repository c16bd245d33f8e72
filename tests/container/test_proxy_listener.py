"""The MITM proxy's address in real containers, made from outside."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess

from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import SkipTest

from ironcurtain.container import proxy_listener
from ironcurtain.container.container import FROM_OUTSIDE, Container
from ironcurtain.container.proxy_listener import ProxyListener
from ironcurtain.container.sidecar import SocketWay
from ironcurtain.errors import Unavailable
from ironcurtain.network.access import PROXY
from ironcurtain.sandbox.bubblewrap_options import holding
from ironcurtain.sandbox.handover import Handover
from ironcurtain.services.stream import serve
from tests.container.test_container import ContainerCase

ASK = "nc -w 9 127.0.0.1 18080 </dev/null"


class Greeting(Protocol):
    """Says something, and ends the connection."""

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"the proxy")
        self.transport.loseConnection()


async def accept(listening: socket.socket) -> asyncio.Server:
    """:returns: what accepts."""
    return await serve(listening, Factory.forProtocol(Greeting))


class ListenerCase(ContainerCase):
    def setUp(self) -> None:
        super().setUp()
        if not self.engine.is_own:
            raise SkipTest("the Docker Engine belongs to another account")
        self.way, self.servers = SocketWay(), list[asyncio.Server]()

    def entered(self) -> Container:
        """:returns: a container whose network is entered."""

        async def accepted(listening: socket.socket) -> asyncio.Server:
            self.servers.append(server := await accept(listening))
            return server

        listener = ProxyListener(self.engine, self.way, accepted)
        container = Container(self.engine, self.session_spec(), self.fail, None, listener)
        self.addCleanup(self.stopped, container)
        return container


class ListenerTests(ListenerCase):
    async def test_programs_reach_the_proxy_and_nothing_of_ours_runs_inside(self) -> None:
        container = self.entered()
        self.assertIn(FROM_OUTSIDE, await container.start())
        self.assertEqual(await self.said(container, ASK), "the proxy")
        # What an earlier command left may not be waited for yet: it is ended, and shown in brackets.
        programs = (await self.said(container, "ps -o args | sed 1d | grep -v '^\\[\\|ps -o\\|sed 1d'")).splitlines()
        self.assertEqual((len(programs), "docker-init" in programs[0]), (3, True), programs)
        self.assertEqual(programs[1:], ["sleep 88888", "sleep 77777"])
        with socket.socket() as ours:
            self.assertNotEqual(ours.connect_ex(("127.0.0.1", PROXY.port)), 0)
        await container.stop()
        self.assertFalse(any(server.is_serving() for server in self.servers))

    async def test_a_closed_network_is_bridged_inside(self) -> None:
        self.patch(proxy_listener, "ENTER_SECONDS", 0.0)
        container = self.entered()
        self.assertNotIn(FROM_OUTSIDE, await container.start())
        self.assertEqual((self.way.enters, self.servers), (False, []))
        self.assertNotIn("the proxy", await self.said(container, ASK))
        self.assertEqual(len(self.containers()), 1)
        self.assertFalse(ProxyListener(self.engine, self.way, accept).possible)

    async def test_only_the_container_s_own_process_leads_to_its_network(self) -> None:
        first, second = await self.running(), await self.running()
        process = (await self.engine.inspect(first))["State"]["Pid"]
        for other in process, os.getpid():
            with self.assertRaisesRegex(Unavailable, f"process {other} is not the container's"):
                self.join(other, second)
        with self.assertRaisesRegex(Unavailable, "No such file or directory"):
            self.join(2**22 + 1, second)
        self.join(process, first)

    def test_the_network_of_this_process_is_not_entered(self) -> None:
        with self.assertRaisesRegex(Unavailable, "no network namespace of its own"):
            self.join(os.getpid(), "/")  # which is in every list of control groups

    def join(self, process: int, container: str) -> None:
        """Make a socket in a network."""
        handover = Handover((PROXY,))
        with handover.theirs as theirs:
            line = [*holding(), str(theirs.fileno()), str(PROXY), str(process), container]
            subprocess.run(line, pass_fds=[theirs.fileno()], check=True, timeout=60)
        for made in handover.take().values():
            made.close()
