"""The connections of one session together: when the servers have to wait for agents that do not read."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from ironcurtain.mcp_proxy.connection import AgentConnection


class Connections:
    """
    The connections of one session, and whether any of them reads.

    :param pause: stops reading from all servers, or goes on.
    :param left: told of each connection that ended.
    """

    def __init__(self, pause: Callable[[bool], None], left: Callable[[AgentConnection], None]) -> None:
        self._pause, self._left = pause, left
        self._all: list[AgentConnection] = []
        self._paused = False
        self._empty: Deferred[None] | None = None

    def add(self, connection: AgentConnection) -> None:
        """A connection was made."""
        self._all.append(connection)

    def remove(self, connection: AgentConnection) -> None:
        """A connection ended."""
        if connection in self._all:
            self._all.remove(connection)
            self._left(connection)
            self.changed()
        if not self._all and self._empty is not None:
            empty, self._empty = self._empty, None
            empty.callback(None)

    def others_read(self, connection: AgentConnection) -> bool:
        """Whether another agent reads what it is sent."""
        return any(not c.choked for c in self._all if c is not connection and c.introduced)

    def changed(self) -> None:
        """A connection is choked, reads again, or ended: the servers wait while no agent reads."""
        introduced = [connection for connection in self._all if connection.introduced]
        paused = bool(introduced) and all(connection.choked for connection in introduced)
        if paused != self._paused:
            self._paused = paused
            self._pause(paused)

    async def close(self) -> None:
        """End all connections, and wait until they are gone."""
        for connection in list(self._all):
            connection.close()
        if self._all:
            self._empty = Deferred()
            await self._empty
