"""Containers that reach the proxies through a sidecar: real ones, made and attacked."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThread
from twisted.protocols.wire import Echo
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.container import Container
from ironcurtain.container.errors import ContainerDied, SidecarFailed, SocketsUnreachable
from ironcurtain.container.probe import judge_sidecar
from ironcurtain.container.proven_ports import ProvenPorts
from ironcurtain.container.screened import ScreenedContainer
from ironcurtain.container.sidecar import Sidecar, SidecarSpec, SocketWay
from ironcurtain.container.spec import SOCKET_NAMES, SOCKETS, ContainerSpec, Mount
from ironcurtain.container.terminal import ContainerTerminal, waiting
from ironcurtain.services.client_limits import ClientAdmission
from ironcurtain.services.stream import Wrap, serve
from ironcurtain.terminal.model import ProgramExit
from tests import engine as test_engine
from tests.container.support import SPEC
from tests.container.test_container import ContainerCase
from tests.container.test_probe import described
from tests.container.test_screened import Owner

ATTEMPTS = """
import socket, sys
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, (sys.argv[1], int(sys.argv[2]))),  # the proxy's port, as the sidecar has it
    (socket.AF_INET, socket.SOCK_STREAM, (sys.argv[1], 22)),
    (socket.AF_INET, socket.SOCK_STREAM, (sys.argv[3], 80)),  # the sidecar itself
    (socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 443)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.11", 53)),  # the Engine's name server
    (socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("169.254.169.254", 80)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700::1111", 443)),
    (socket.AF_INET6, socket.SOCK_STREAM, ("fe80::1", 80, 0, 2)),
):
    try:
        with socket.socket(family, kind) as client:
            client.settimeout(3)
            client.connect(address)
            client.send(b"x" * 40)
            client.recv(1)
        print("REACHED", address)
    except OSError as e:
        print(type(e).__name__, address)
try:
    print("RESOLVED", socket.getaddrinfo("example.com", 443))
except OSError:
    print("unresolved")
"""


class WayTests(SynchronousTestCase):
    def test_a_sidecar_is_made_where_it_is_ordered_or_found_necessary(self) -> None:
        self.assertEqual([SocketWay(setting).tcp for setting in ("auto", "unix", "tcp")], [False, False, True])
        self.assertEqual([SocketWay(setting, True).tcp for setting in ("auto", "unix")], [True, False])
        self.assertEqual([SocketWay(setting).try_tcp() for setting in ("auto", "unix", "tcp")], [True, False, False])


class JudgementTests(SynchronousTestCase):
    """What the Engine says of a sidecar and of its network."""

    def setUp(self) -> None:
        volume = Mount("v", SOCKETS, read_only=False, volume=True)
        self.spec = SidecarSpec(replace(SPEC, mounts=(volume,)), "n", True)
        self.said = described(replace(SPEC, mounts=()))
        self.said["HostConfig"] |= self.spec.create_request()["HostConfig"]
        self.said["Mounts"] = [{"Type": "volume", "Name": "v", "Source": "/x", "Destination": SOCKETS, "RW": True}]
        self.said["NetworkSettings"] = {"Networks": {"n": {}}}
        self.network: dict[str, Any] = {"Internal": True, "Containers": {"s" * 64: {}}}

    def problems(self) -> str:
        findings = judge_sidecar("s" * 64, self.said, self.network, self.spec)
        return "; ".join(f"{f.what}: {f.problem}" for f in findings if f.problem)

    def test_nothing_is_wrong_with_one_as_ordered(self) -> None:
        self.assertEqual(self.problems(), "")
        self.spec = replace(self.spec, internal=False)
        self.said["HostConfig"]["ExtraHosts"] = ["host.ironcurtain:host-gateway"]
        self.network["Internal"] = False
        self.assertEqual(self.problems(), "")

    def test_every_difference_is_found(self) -> None:
        for name, value in (
            ("CapDrop", []), ("Privileged", True), ("NetworkMode", "host"), ("ExtraHosts", ["a:1.2.3.4"]),
            ("PortBindings", {"80/tcp": [{"HostPort": "80"}]}), ("Binds", ["/:/host"]), ("ReadonlyRootfs", False),
        ):  # fmt: skip
            self.setUp()
            self.said["HostConfig"][name] = value
            self.assertIn(name, self.problems())
        for problem, change_it in (
            ("networks bridge", lambda: self.said["NetworkSettings"]["Networks"].update(bridge={})),
            ("other containers are in its network: other", lambda: self.network["Containers"].update(other={})),
            ("not internal", lambda: self.network.update(Internal=False)),
            ("/data, which is unexpected", lambda: self.said["Mounts"][0].update(Destination="/data")),
        ):
            self.setUp()
            change_it()
            self.assertIn(problem, self.problems())


class SidecarCase(ContainerCase):
    def setUp(self) -> None:
        super().setUp()
        self.opened: list[ProvenPorts] = []
        self.told: list[str] = []

    async def accept(self, listening: socket.socket, wrap: Wrap) -> asyncio.Server:
        """A proxy that sends back what it gets."""
        return await serve(listening, wrap(Factory.forProtocol(Echo)), ClientAdmission())

    async def open_ports(self, address: str) -> ProvenPorts:
        """:returns: the ports of both sockets, for :attr:`opened`, too."""
        ports = ProvenPorts(reactor)
        self.opened.append(ports)
        for name in sorted(SOCKET_NAMES):
            await ports.open(address, name, self.accept)
        return ports

    def sidecar(self, way: SocketWay) -> Sidecar:
        """:returns: one that is not started."""
        return Sidecar(self.engine, way, self.open_ports, self.told.append)

    def behind(self, way: SocketWay) -> Container:
        """:returns: a container with a sidecar, if the way says so."""
        return self.made(self.named_spec(), way)

    def named_spec(self, **changes: Any) -> ContainerSpec:
        """:returns: a container with a name, as its sidecar needs it; nobody listens on its mounted socket."""
        spec = self.session_spec(**changes)
        sockets = next(mount.source for mount in spec.mounts if mount.target == SOCKETS)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(f"{sockets}/mitm-proxy.sock")
        image = test_engine.image("python3", "socat")
        return replace(spec, name=f"ironcurtain-test-{os.getpid()}", image=image)

    def made(self, spec: ContainerSpec, way: SocketWay) -> Container:
        """:returns: a container whose death is noted."""

        def death(error: ContainerDied) -> None:
            self.deaths.append(str(error))
            self.died.callback(None)

        container = Container(self.engine, spec, death, self.sidecar(way))
        self.addCleanup(self.stopped, container)
        return container

    def left(self) -> list[str]:
        """:returns: names of networks and volumes of these tests."""
        filters = quote(json.dumps({"label": [f"ironcurtain.test={self.label}"]}))
        [networks] = test_engine.call("GET", f"/networks?filters={filters}")
        [volumes] = test_engine.call("GET", f"/volumes?filters={filters}")
        return [each["Name"] for each in (*networks, *(volumes["Volumes"] or ()))]


class SidecarTests(SidecarCase):
    async def test_what_it_passes_on_and_what_it_leaves_behind(self) -> None:
        container = self.behind(SocketWay("tcp"))
        findings = await container.start()
        self.assertIn("sidecar's network with nothing else", [finding.what for finding in findings])
        self.assertIn('by TCP, through a sidecar: agents.sockets is "tcp"', self.told[0])
        await self.sh(container.id, "head -c 300000 /dev/urandom >/tmp/a")
        for name in sorted(SOCKET_NAMES):
            line = f"socat -t9 - UNIX:{SOCKETS}/{name} </tmp/a >/tmp/b; cmp /tmp/a /tmp/b"
            self.assertEqual(await self.sh(container.id, line), (0, "", ""))
        said = await self.sh(container.id, f"cd {SOCKETS}; rm proxy.sock; mkdir x; chmod 666 proxy.sock")
        self.assertEqual((said.status, said.err.lower().count("read-only file system")), (1, 3))
        self.assertEqual(len(self.left()), 2)
        await container.stop()
        self.assertEqual((self.containers(), self.left()), ([], []))

    async def test_a_program_inside_reaches_nothing_else_and_does_not_find_the_secret(self) -> None:
        container = self.behind(SocketWay("tcp"))
        await container.start()
        [sidecar] = [each for each in self.containers() if each["Id"] != container.id]
        [network] = sidecar["NetworkSettings"]["Networks"].values()
        words = (network["Gateway"], str(next(iter(self.opened[0].ports.values()))), network["IPAddress"])
        said = await self.sh(container.id, f"exec python3 -I -S - {' '.join(words)}", ATTEMPTS.encode())
        self.assertEqual((said.status, said.err), (0, ""))
        self.assertNotIn("REACHED", said.out)
        self.assertNotIn("RESOLVED", said.out)
        self.assertEqual(len(said.out.splitlines()), 10)
        secret = self.opened[0].secret.reveal()
        for each in (container.id, sidecar["Id"]):
            inspected = json.dumps(test_engine.call("GET", f"/containers/{each}/json"))
            self.assertNotIn(secret, inspected)
            self.assertNotIn(secret, await self.engine.output(each, 1000))
            shown = await self.sh(each, "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline")
            self.assertNotIn(secret, shown.out)

    async def test_sessions_do_not_share_a_network_or_a_secret(self) -> None:
        spec = self.named_spec()
        for name in (spec.name, f"{spec.name}b"):
            await self.made(replace(spec, name=name), SocketWay("tcp")).start()
        networks = {json.dumps(sorted(each["NetworkSettings"]["Networks"])) for each in self.containers()}
        self.assertEqual(len(networks), 3)  # with the one of both agents, which has nothing in it
        self.assertNotEqual(self.opened[0].secret, self.opened[1].secret)

    async def test_the_end_of_a_sidecar_ends_the_container(self) -> None:
        container = self.behind(SocketWay("tcp"))
        await container.start()
        [sidecar] = [each for each in self.containers() if each["Id"] != container.id]
        test_engine.call("POST", f"/containers/{sidecar['Id']}/kill")
        await self.died
        self.assertIn("sidecar, through which it reaches IronCurtain, ended: it was killed", self.deaths[0])
        await container.stop()
        self.assertEqual((self.containers(), self.left()), ([], []))

    async def test_one_that_cannot_reach_this_machine_is_removed(self) -> None:
        async def closed(address: str) -> ProvenPorts:
            (ports := await self.open_ports(address)).close()
            return ports

        sidecar = Sidecar(self.engine, SocketWay("tcp"), closed, self.told.append)
        container = Container(self.engine, self.named_spec(), lambda why: None, sidecar)
        with self.assertRaises(SidecarFailed) as caught:
            await container.start()
        self.assertIn("the host cannot be reached at", str(caught.exception))
        self.assertEqual((self.containers(), self.left()), ([], []))


class TrialTests(SidecarCase):
    """Mounted sockets that nothing can connect to, as in Docker Desktop."""

    async def test_a_sidecar_is_made_and_the_next_container_gets_one_at_once(self) -> None:
        way = SocketWay("auto")
        container = self.behind(way)
        await container.start()
        self.assertTrue(way.tcp)
        self.assertIn("programs in containers cannot connect to sockets of this machine", self.told[0])
        self.assertEqual(len(self.containers()), 2)
        said = await self.sh(container.id, f"echo hello | socat -t9 - UNIX:{SOCKETS}/proxy.sock")
        self.assertEqual(said, (0, "hello\n", ""))

    async def test_none_is_made_where_it_is_forbidden(self) -> None:
        with self.assertRaises(SocketsUnreachable):
            await self.behind(SocketWay("unix")).start()
        self.assertEqual((self.containers(), self.left()), ([], []))

    async def test_none_is_made_where_sockets_work(self) -> None:
        spec = self.named_spec()
        sockets = next(mount.source for mount in spec.mounts if mount.target == SOCKETS)
        os.unlink(f"{sockets}/mitm-proxy.sock")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"{sockets}/mitm-proxy.sock")
            os.chmod(f"{sockets}/mitm-proxy.sock", 0o666)
            listening.listen()
            accepting = deferToThread(listening.accept)
            await self.made(spec, way := SocketWay("auto")).start()
            (await accepting)[0].close()
        self.assertFalse(way.tcp)
        self.assertEqual(len(self.containers()), 1)

    async def test_an_agent_with_a_terminal_starts_in_the_second_container(self) -> None:
        terminal, owner = ContainerTerminal(self.engine, 80, 24), Owner()
        terminal.owner = owner
        over: Deferred[ProgramExit] = Deferred()
        spec = self.named_spec(command=waiting(("sh", "-c", "echo here; read word; exit 7")), tty=True)
        sidecar = self.sidecar(SocketWay("auto"))
        container = ScreenedContainer(self.engine, spec, terminal, over.callback, sidecar)
        self.addCleanup(self.stopped, container)
        await container.start()
        while b"here" not in owner.got:
            await self.turn()
        self.assertEqual(bytes(owner.got), b"here\r\n", "and nothing of what came before")
        terminal.write(b"\r")
        self.assertEqual((await over).status, 7)
        await container.stop()
        self.assertEqual((self.containers(), self.left()), ([], []))
