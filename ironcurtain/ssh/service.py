"""The SSH service: listens, and ends all connections in good order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from twisted.internet.defer import DeferredList
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ironcurtain.home.layout import Home, private_directory
from ironcurtain.services.stream import serve
from ironcurtain.ssh.addresses import ELSEWHERE, family, nowhere, refusal
from ironcurtain.ssh.channel import Programs
from ironcurtain.ssh.connections import Connections
from ironcurtain.ssh.key_files import KeyFile, directory, host_key


class SshService:
    """
    The console and the commands over SSH.

    :param addresses: to listen on. One that this machine does not have is left out, as ``::1`` often is.
    :param port: 0 for any that is free.
    """

    log = Logger()

    def __init__(self, reactor: Any, home: Home, addresses: Sequence[str], port: int, programs: Programs) -> None:
        self._reactor, self._home, self._addresses, self._port = reactor, home, addresses, port
        self._programs = programs
        self._listening: list[asyncio.Server] = []
        self.connections: Connections | None = None

    @property
    def ports(self) -> list[int]:
        """The port of each address that is listened on."""
        return [server.sockets[0].getsockname()[1] for server in self._listening]

    async def start(self) -> None:
        """
        Let people in. The sockets listen when this returns to its caller for the first time, before the loop runs.

        :raises ConfigurationError: the host key is damaged, or others can read it.
        :raises Unavailable: the port is in use, or none of the addresses is this machine's.
        """
        private_directory(directory(self._home))
        key = host_key(self._home)
        self.connections = connections = Connections(self._reactor, key, KeyFile(directory(self._home)), self._programs)
        connections.doStart()
        connections.look()
        try:
            await self._listen(connections)
        except BaseException:
            await self.stop()
            raise
        self.log.info(
            "SSH on {addresses}, port {port}, with host key {mark}",
            addresses=", ".join(self._addresses),
            port=self.ports[0],
            mark=key.fingerprint,
        )

    async def stop(self) -> None:
        """Let nobody in any more, and end all connections, each with a word."""
        for server in self._listening:
            server.close()
        self._listening = []
        if self.connections is not None:
            self.connections.cut("IronCurtain has stopped", [*self.connections.live, *self.connections.unknown])
            await DeferredList([connection.gone for connection in self.connections.leaving])
            self.connections.doStop()

    async def _listen(self, connections: Connections) -> None:
        with ExitStack() as unserved:
            bound = [found for address in self._addresses if (found := self._bind(address, unserved)) is not None]
            if not bound:
                raise nowhere(self._addresses)
            await deferLater(self._reactor, 0)
            for listening in bound:
                self._listening.append(await serve(listening, connections))
            unserved.pop_all()

    def _bind(self, address: str, unserved: ExitStack) -> socket.socket | None:
        try:
            return unserved.enter_context(socket.create_server((address, self._port), family=family(address)))
        except OSError as e:
            number = e.errno or 0
            if number not in ELSEWHERE:
                raise refusal(address, self._port, number) from None
        self.log.info("no SSH on {address}: this machine does not have it", address=address)
        return None
