"""State that all connections of one session share."""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec
from twisted.internet.defer import Deferred, succeed

from ironcurtain.mitm_proxy.judgement import Credentials
from ironcurtain.mitm_proxy.limits import BufferedBytes, MitmLimits
from ironcurtain.mitm_proxy.recording import Omissions, Recorder, Troubles
from ironcurtain.mitm_proxy.tls import ServerSide
from ironcurtain.mitm_proxy.upstream import UpstreamPool

if typing.TYPE_CHECKING:
    from ironcurtain.mitm_proxy.open_hosts import OpenHosts


class Destination(msgspec.Struct, frozen=True):
    """
    One provider that the session's agent may reach.

    :param side: the server's side of TLS, with the certificate for the provider's host.
    :param pool: the session's connections to it.
    :param troubles: describes its failures.
    :param omissions: describes what is left out of requests to it.
    """

    credentials: Credentials
    side: ServerSide
    pool: UpstreamPool
    troubles: Troubles
    omissions: Omissions


class ProxyConnection(typing.Protocol):
    """One of the agent's connections."""

    def check(self, now: float) -> None:
        """Enforce time limits; time in seconds of the clock."""

    def abort(self) -> None:
        """Close at once."""


class NewConnection(ProxyConnection, typing.Protocol):
    """A connection that may have to wait."""

    def begin(self) -> None:
        """Start reading."""


class ProxyConnections:
    """
    The agent's open connections. Those above a limit wait, unread, until others end: package managers open dozens.

    :param most: maximum number that are served at a time.
    :param waiting: maximum number that wait.
    """

    def __init__(self, most: int, waiting: int) -> None:
        self._most, self._most_waiting = most, waiting
        self._open: set[ProxyConnection] = set()
        self._waiting: deque[NewConnection] = deque()
        self._empty: Deferred[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: NewConnection) -> bool:
        """
        Add a new connection, which begins now or later.

        :returns: false if it must be closed, because too many wait.
        """
        if len(self._open) < self._most:
            self._open.add(connection)
            connection.begin()
            return True
        if len(self._waiting) < self._most_waiting:
            self._waiting.append(connection)
            return True
        return False

    def replace(self, old: ProxyConnection, new: ProxyConnection) -> None:
        """Replace the object that handles a connection."""
        self._open.discard(old)
        self._open.add(new)

    def remove(self, connection: ProxyConnection) -> None:
        """Remove a connection that ended; the one that waits longest begins."""
        if connection in self._open:
            self._open.remove(connection)
            if self._waiting and self._empty is None:
                following = self._waiting.popleft()
                self._open.add(following)
                following.begin()
        else:
            with suppress(ValueError):
                self._waiting.remove(connection)  # type: ignore[arg-type]
        if not self._open and not self._waiting and self._empty is not None:
            empty, self._empty = self._empty, None
            empty.callback(None)

    def check(self, now: float) -> None:
        """Enforce the time limits of all connections."""
        for connection in list(self._open):
            connection.check(now)

    def close(self) -> Deferred[None]:
        """Close all connections; fires when they have ended."""
        if not self._open and not self._waiting:
            return succeed(None)
        empty: Deferred[None] = Deferred()
        self._empty = empty
        for connection in [*self._open, *self._waiting]:
            connection.abort()
        return empty


class Shared(msgspec.Struct, frozen=True):
    """
    :param destinations: by host in lower case, and port.
    :param buffered: counts the buffered bodies of all connections.
    :param exhausted: returns why no further request may be made; empty if one may.
    :param open_hosts: for hosts that belong to no provider.
    :param connections: the agent's connections.
    """

    destinations: Mapping[tuple[str, int], Destination]
    limits: MitmLimits
    recorder: Recorder
    buffered: BufferedBytes
    exhausted: Callable[[], str]
    open_hosts: OpenHosts
    connections: ProxyConnections
