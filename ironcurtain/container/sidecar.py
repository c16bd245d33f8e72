"""
The sidecar of a container: connects it with the proxies where the container cannot use sockets of this machine.

Containers of an Engine in a virtual machine, such as Docker Desktop's, see the files that are mounted, but cannot
connect to a socket among them. The sidecar is a second container, which runs no program but
:mod:`ironcurtain.container.sidecar_program`. It makes the sockets in a volume in the Engine's memory, which the agent's
container gets in place of the mounted directory, and passes what connects on to ports of this machine
(:mod:`ironcurtain.container.proven_ports`). So the agent's container has no network in this case, either.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import resources
from typing import Any, Literal

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late

from ironcurtain.container.engine import ContainerState, Engine
from ironcurtain.container.errors import EngineError, EngineUnavailable, SidecarFailed
from ironcurtain.container.execution import shielded
from ironcurtain.container.proven_ports import ProvenPorts
from ironcurtain.container.sidecar_program import READY
from ironcurtain.container.spec import ROLE_LABEL, SIDECAR, SOCKETS, ContainerSpec, Mount
from ironcurtain.container.streams import STDOUT, Demultiplexer
from ironcurtain.process.bounded import Kept

READY_SECONDS = 20.0
"""Time limit in seconds from a sidecar's start until it has reached the host (it took 0.2 s)."""

STOP_SECONDS = 1
"""Seconds between SIGTERM and SIGKILL; it has nothing to save."""

SAID_LIMIT = 2000
"""Most bytes kept of what a sidecar says."""

MEMORY_MB, SCRATCH_MB, PROCESSES, CPUS = 512, 1, 16, 1.0
"""Limits of a sidecar: Python takes 15 MiB, and each of 256 connections at most 1 MiB, where both sides do not read."""

LOOPBACK = "127.0.0.1"
"""Where ports are opened if the Engine is in a virtual machine, which passes connections to its host on to it."""

HOST_NAME = "host.ironcurtain"
"""The name by which a sidecar knows this machine where the Engine is in a virtual one."""

VOLUME_OPTIONS = "size=64k,nr_inodes=16,mode=0700"
"""Of the volume's file system in memory, which holds two sockets (tmpfs(5))."""

Listen = Callable[[str], Awaitable[ProvenPorts]]
"""Opens the ports of a sidecar at an address of this machine."""


class SocketWay(msgspec.Struct):
    """
    How containers reach the proxies, found out once for all containers of a process.

    :param setting: ``unix``: by mounted sockets; ``tcp``: through a sidecar; ``auto``: through a sidecar if a program
        in a container could not connect to a mounted socket.
    :ivar unreachable: whether it could not.
    :ivar enters: whether the network of a container can be entered from outside, as far as is known.
    """

    setting: Literal["auto", "unix", "tcp"] = "auto"
    unreachable: bool = False
    enters: bool = True

    @property
    def tcp(self) -> bool:
        """Whether containers get a sidecar from the start."""
        return self.setting == "tcp" or (self.setting == "auto" and self.unreachable)

    @property
    def reason(self) -> str:
        """Why there is a sidecar, for people."""
        if self.setting == "tcp":
            return 'agents.sockets is "tcp"'
        return "programs in containers cannot connect to sockets of this machine"

    def try_tcp(self) -> bool:
        """:returns: whether to try again through a sidecar, after a program could not connect to a mounted socket."""
        self.unreachable = True
        return self.setting == "auto"


class SidecarSpec(msgspec.Struct, frozen=True):
    """
    A sidecar: like an agent's container, but with a network, and with an input that is not a terminal.

    :param base: what it has in common with an agent's container.
    :param network: the only network that it is in.
    :param internal: whether that network reaches no other machine.
    """

    base: ContainerSpec
    network: str
    internal: bool

    @property
    def name(self) -> str:
        """Its name in the Engine."""
        return self.base.name

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Nothing but the volume."""
        return self.base.mounts

    def create_request(self) -> dict[str, Any]:
        """:returns: the body of ``POST /containers/create``."""
        request = self.base.create_request()
        hosts = [] if self.internal else [f"{HOST_NAME}:host-gateway"]
        own = {"NetworkMode": self.network, "ExtraHosts": hosts}
        return {
            **request,
            "Entrypoint": ["python3", "-I", "-S", "-c"],
            "WorkingDir": "/",
            "OpenStdin": True,
            "StdinOnce": True,
            "HostConfig": {**request["HostConfig"], **own},
        }


class Sidecar:
    """
    The sidecar of one container at a time.

    :param way: says whether one is needed.
    :param listen: opens its ports.
    :param tell: called with a sentence for the user when it is made.
    """

    def __init__(self, engine: Engine, way: SocketWay, listen: Listen, tell: Callable[[str], None]) -> None:
        self._engine, self.way, self._listen, self._tell = engine, way, listen, tell
        self._ports: ProvenPorts | None = None
        self._id = self._network = self._volume = ""
        self._watching: Deferred[None] | None = None
        self.spec: SidecarSpec | None = None
        """What it was made as."""
        self.problem = ""
        """Why it has ended by itself."""

    @property
    def id(self) -> str:
        """Its full id; empty: there is none."""
        return self._id

    async def start(self, spec: ContainerSpec, ended: Callable[[], Awaitable[None]]) -> ContainerSpec:
        """
        Make and start it, with its network and its volume. If that fails or is cancelled, all is removed.

        :param spec: of the container that it is for.
        :param ended: ends that container; called if the sidecar ends by itself.
        :returns: the same container, with the volume in place of the directory of sockets.
        :raises SidecarFailed: it cannot reach this machine.
        """
        self.problem = ""
        self._tell(f"the container reaches IronCurtain by TCP, through a sidecar: {self.way.reason}")
        starting = Deferred.fromCoroutine(self._start(spec))
        try:
            changed = await shielded(starting)
        except Exception:  # including cancellation
            await shielded(Deferred.fromCoroutine(self._discard(starting)))
            raise
        self._watching = Deferred.fromCoroutine(self._watch(ended))
        return changed

    async def stop(self) -> None:
        """End and remove it, with all that belongs to it. Can be called if there is none."""
        if self._watching is not None:
            self._watching.cancel()
        if self._ports is not None:
            self._ports.close()
        with suppress(EngineError):  # whatever the state, removing ends it
            if self._id:
                await self._engine.stop(self._id, STOP_SECONDS)
        for remove, which in (
            (self._engine.remove, self._id),
            (self._engine.remove_network, self._network),
            (self._engine.remove_volume, self._volume),
        ):
            try:
                if which:
                    await remove(which)
            except EngineError as e:
                if e.status not in (404, 409):  # it is gone, or being removed
                    raise
        self._id = self._network = self._volume = ""
        self._ports = self._watching = None

    async def network(self) -> dict[str, Any]:
        """:returns: the Engine's description of its network."""
        return await self._engine.inspect_network(self._network)

    async def inspect(self) -> dict[str, Any]:
        """:returns: the Engine's description of it."""
        return await self._engine.inspect(self._id)

    async def _start(self, spec: ContainerSpec) -> ContainerSpec:
        self._volume = await self._make_volume(spec)
        address = await self._make_network(spec)
        internal = bool(address)
        try:
            self._ports = await self._listen(address or LOOPBACK)
        except OSError as e:
            raise SidecarFailed(f"no port of this machine can be opened: {e.strerror}") from None
        named_ports = [f"{name}:{port}" for name, port in self._ports.ports.items()]
        text = resources.files("ironcurtain.container").joinpath("sidecar_program.py").read_text()
        base = replace(
            spec,
            name=f"{spec.name}-{SIDECAR}",
            command=(text, SOCKETS, address or HOST_NAME, *named_ports),
            environment={},
            mounts=(Mount(self._volume, SOCKETS, read_only=False, volume=True),),
            tmpfs_mb=SCRATCH_MB,
            memory_mb=MEMORY_MB,
            cpus=min(CPUS, spec.cpus),
            pids=PROCESSES,
            labels={**spec.labels, ROLE_LABEL: SIDECAR},
            tty=False,
        )
        self.spec = SidecarSpec(base, self._network_name(spec), internal)
        self._id = await self._engine.create(self.spec)
        await self._get_ready(self._ports)
        shared = Mount(self._volume, SOCKETS, volume=True)
        others = tuple(mount for mount in spec.mounts if mount.target != SOCKETS)
        return replace(spec, mounts=(*others, shared))

    async def _make_volume(self, spec: ContainerSpec) -> str:
        mount = f"{VOLUME_OPTIONS},uid={spec.uid},gid={spec.gid}"
        options = {"type": "tmpfs", "device": "tmpfs", "o": mount}
        return await self._engine.create_volume(f"{spec.name}-{SIDECAR}", spec.labels, options)

    async def _make_network(self, spec: ContainerSpec) -> str:
        """
        Make a network in which nothing but the sidecar and this machine can be reached, if this machine is in it.

        :returns: its address in that network; empty: the Engine is in a virtual machine, through whose gateway it has
            to be reached.
        """
        name = self._network_name(spec)
        self._network = await self._engine.create_network(name, spec.labels, internal=True)
        configured = (await self.network())["IPAM"].get("Config") or ()
        gateways = [str(each.get("Gateway", "")) for each in configured]
        if address := next(filter(_is_ours, gateways), ""):
            return address
        await self._engine.remove_network(self._network)
        self._network = await self._engine.create_network(name, spec.labels, internal=False)
        return ""

    def _network_name(self, spec: ContainerSpec) -> str:
        return f"{spec.name}-{SIDECAR}"

    async def _get_ready(self, ports: ProvenPorts) -> None:
        said, ready, frames = Kept(SAID_LIMIT), Deferred[bool](), Demultiplexer()

        def answer(works: bool) -> None:
            if not ready.called:
                ready.callback(works)

        def receive(data: bytes) -> None:
            for output, piece in frames.feed(data):
                said.feed(piece)
                if output == STDOUT and READY.encode() in piece:
                    answer(True)

        stream = await self._engine.attach(self._id, receive)
        stream.ended.addCallback(lambda _: answer(False))
        try:
            await self._engine.start(self._id)
            stream.write(f"{ports.secret.reveal()}\n".encode())
            works = await ready.addTimeout(READY_SECONDS, self._engine.clock)
        except Late:
            raise SidecarFailed(f"it was not ready within {READY_SECONDS:g} s") from None
        finally:
            stream.abort()
        if not works:
            raise SidecarFailed(said.content.decode("utf-8", "replace").strip() or "it ended at once")

    async def _watch(self, ended: Callable[[], Awaitable[None]]) -> None:
        try:
            with suppress(EngineError):  # it is already gone
                await self._engine.wait(self._id)
            self.problem = await self._how()
            await ended()
        except (CancelledError, EngineUnavailable):  # the container's own watch tells of an Engine that is gone
            return

    async def _how(self) -> str:
        try:
            state = ContainerState.of(await self.inspect())
        except EngineError as e:
            return f"another program removed the container's sidecar ({e.message})"
        return f"the container's sidecar, through which it reaches IronCurtain, ended: {state.reason}"

    async def _discard(self, starting: Deferred[Any]) -> None:
        if not starting.called:
            with suppress(Exception):
                await starting
        await self.stop()


def _is_ours(address: str) -> bool:
    """:returns: whether an IPv4 address is one of this machine's."""
    with socket.socket() as trial:
        try:
            trial.bind((address, 0))
        except (OSError, ValueError):
            return False
    return bool(address)
