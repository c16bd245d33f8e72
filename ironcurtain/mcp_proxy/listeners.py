"""Where agents reach the MCP proxy of a session: UNIX sockets, or standard input and output."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IAddress, IReactorFDSet, IReactorTime
from twisted.internet.protocol import ServerFactory
from twisted.internet.stdio import StandardIO
from twisted.python.failure import Failure

from ironcurtain.mcp_proxy.connection import AgentConnection
from ironcurtain.platform.sockets import hung_up
from ironcurtain.services.client_limits import ClientAdmission
from ironcurtain.services.stream import Wrap, serve
from ironcurtain.services.unix_socket import UnixListener, listen


class AgentConnections:
    """
    The connections of one session, and whether any of them reads.

    :param pause: stops or resumes reading from all servers.
    :param left: called with each connection that ended.
    """

    def __init__(self, pause: Callable[[bool], None], left: Callable[[AgentConnection], None]) -> None:
        self._pause, self._left = pause, left
        self._all: list[AgentConnection] = []
        self._paused = False
        self._empty: Deferred[None] | None = None

    def add(self, connection: AgentConnection) -> None:
        """Register a new connection."""
        self._all.append(connection)

    def remove(self, connection: AgentConnection) -> None:
        """Remove a connection that ended."""
        if connection in self._all:
            self._all.remove(connection)
            self._left(connection)
            self.changed()
        if not self._all and self._empty is not None:
            empty, self._empty = self._empty, None
            empty.callback(None)

    def others_read(self, connection: AgentConnection) -> bool:
        """:returns: whether another agent reads its output."""
        return any(not c.choked for c in self._all if c is not connection and c.introduced)

    def changed(self) -> None:
        """A connection stopped or resumed reading, or ended. The servers wait while no agent reads."""
        introduced = [connection for connection in self._all if connection.introduced]
        paused = bool(introduced) and all(connection.choked for connection in introduced)
        if paused != self._paused:
            self._paused = paused
            self._pause(paused)

    async def close(self) -> None:
        """End all connections, and wait until they are closed."""
        for connection in list(self._all):
            connection.close()
        if self._all:
            self._empty = Deferred()
            await self._empty


Build = Callable[[Callable[[AgentConnection], bool]], AgentConnection]
"""Creates a connection; takes a function that returns whether the peer has disconnected completely."""


class ListenerReactor(IReactorTime, IReactorFDSet):
    """The parts of a reactor that the listeners need."""


async def listen_unix(path: Path, build: Build, owner: tuple[int, int] | None = None) -> UnixListener:
    """
    Listen on a UNIX socket for one uid.

    :param path: its directory is created if missing; a stale socket of a dead process is removed.
    :param owner: uid and gid of the peer, if not those of this process.
    :raises ConfigurationError: the path is too long.
    :raises Unavailable: others could replace the socket, or another file is at its path.
    """
    return await listen(path, _Connections(build, _hung_up), owner)


async def accept(listening: socket.socket, build: Build, wrap: Wrap) -> asyncio.Server:
    """
    Accept on a TCP socket.

    :param listening: bound; owned by the server from now on, and closed if this fails.
    :param wrap: returns a factory that lets only the right clients through.
    """
    return await serve(listening, wrap(_Connections(build, _hung_up)), ClientAdmission())


def serve_stdio(reactor: ListenerReactor, build: Build, stdin: int = 0, stdout: int = 1) -> Deferred[None]:
    """
    Serve one agent on standard input and output.

    :returns: fires when the agent disconnects. The descriptors stay open, since the process is expected to exit.
    """
    connection = build(lambda _: False)
    _StandardStreams(connection, stdin, stdout, reactor)  # type: ignore[call-arg]  # mypy takes the one for Windows
    return connection.ended


class _StandardStreams(StandardIO):
    def abortConnection(self) -> None:
        """
        End at once. Twisted's transport has no such method: it waits without end for closing an output that is closed
        already.
        """
        if not self.disconnected:
            self.connectionLost(Failure(ConnectionAborted()))  # type: ignore[attr-defined]  # as above


class _Connections(ServerFactory):
    noisy = False

    def __init__(self, build: Build, gone: Callable[[AgentConnection], bool]) -> None:
        self._build, self._gone = build, gone

    def buildProtocol(self, addr: IAddress | None) -> AgentConnection:
        return self._build(self._gone)


def _hung_up(connection: AgentConnection) -> bool:
    return hung_up(connection.transport.fileno())  # type: ignore[attr-defined]
