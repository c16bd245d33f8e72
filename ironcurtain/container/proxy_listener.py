"""
The MITM proxy's address inside a container, made from outside: the proxy itself accepts what programs connect to.

Otherwise a program of the image has to run inside, which passes each connection on to the mounted socket.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.protocol import ProcessProtocol

from ironcurtain.container.engine import ContainerState, Engine
from ironcurtain.container.errors import ContainerDied, NetworkClosed
from ironcurtain.container.sidecar import SocketWay
from ironcurtain.errors import Unavailable
from ironcurtain.network.access import PROXY
from ironcurtain.process.directory import in_directory
from ironcurtain.sandbox.awaited_sockets import awaited_sockets
from ironcurtain.sandbox.bubblewrap_options import HANDOVER_DESCRIPTOR, holding
from ironcurtain.sandbox.handover import Handover, Sockets

ENTER_SECONDS = 10.0
"""Time limit in seconds for making the socket inside (it took 30 ms)."""


class ProxyListener:
    """
    The address in one container at a time.

    :param way: remembers whether networks of containers can be entered.
    :param accept: lets the proxy accept clients on a listening socket.
    """

    def __init__(
        self, engine: Engine, way: SocketWay, accept: Callable[[socket.socket], Awaitable[asyncio.Server]]
    ) -> None:
        self._engine, self._way, self._accept = engine, way, accept
        self._server: asyncio.Server | None = None

    @property
    def possible(self) -> bool:
        """Whether to try: so far no container's network was closed to this process."""
        return self._way.enters and self._engine.is_own

    async def open(self, container: str) -> None:
        """
        Make the address in a running container, before a program inside needs it.

        :param container: its full id.
        :raises NetworkClosed: that is impossible; it is not tried in another container.
        :raises ContainerDied: it has ended.
        """
        state = ContainerState.of(await self._engine.inspect(container))
        if not state.running:
            raise ContainerDied(f"the container ended: {state.reason}")
        try:
            (listening,) = (await self._made(state.pid, container)).values()
        except Unavailable as e:
            self._way.enters = False
            raise NetworkClosed(str(e)) from None
        self._server = await self._accept(listening)

    def close(self) -> None:
        """Let it refuse connections from now on. Can be called if it is not open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def _made(self, process: int, container: str) -> Sockets:
        handover = Handover((PROXY,))
        coming: Deferred[Sockets] = awaited_sockets(handover, self._engine.clock)
        try:
            self._enter(handover, process, container)
            return await coming.addTimeout(ENTER_SECONDS, self._engine.clock)
        except Late:
            raise Unavailable(f"its network was not entered within {ENTER_SECONDS:g} s") from None
        except OSError as e:
            coming.addErrback(lambda failure: failure.trap(CancelledError)).cancel()
            raise Unavailable(f"its network cannot be entered: {e.strerror}") from None

    def _enter(self, handover: Handover, process: int, container: str) -> None:
        with handover.theirs, open(os.devnull, "r+b") as nothing:
            line, place = in_directory("/", [*holding(), str(HANDOVER_DESCRIPTOR), str(PROXY), str(process), container])
            standard = dict.fromkeys((0, 1, 2), nothing.fileno())
            given = {**standard, HANDOVER_DESCRIPTOR: handover.theirs.fileno()}
            self._engine.clock.spawnProcess(ProcessProtocol(), line[0], line, {}, place, childFDs=given)
