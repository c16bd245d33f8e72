"""State that all connections of one session share."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred, succeed

from ironcurtain.mitm_proxy.judgement import Credentials
from ironcurtain.mitm_proxy.limits import BufferedBytes, MitmLimits
from ironcurtain.mitm_proxy.recording import Omissions, Recorder, Troubles
from ironcurtain.mitm_proxy.scrub import KeyForms
from ironcurtain.mitm_proxy.tls import ServerSide
from ironcurtain.mitm_proxy.upstream import UpstreamPool


@dataclass(frozen=True, slots=True)
class Destination:
    """
    One provider that the session's agent may reach.

    :param side: the server's side of TLS, with the certificate for the provider's host.
    :param pool: the session's connections to it.
    :param key_forms: forms of the real key, which is removed from responses.
    :param troubles: describes its failures.
    :param omissions: describes what is left out of requests to it.
    """

    credentials: Credentials
    side: ServerSide
    pool: UpstreamPool
    key_forms: KeyForms
    troubles: Troubles
    omissions: Omissions


class ProxyConnection(typing.Protocol):
    """One of the agent's connections."""

    def check(self, now: float) -> None:
        """Enforce time limits; time in seconds of the clock."""

    def abort(self) -> None:
        """Close at once."""


class ProxyConnections:
    """The agent's open connections."""

    def __init__(self) -> None:
        self._open: set[ProxyConnection] = set()
        self._empty: Deferred[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: ProxyConnection) -> None:
        """Add a new connection."""
        self._open.add(connection)

    def replace(self, old: ProxyConnection, new: ProxyConnection) -> None:
        """Replace the object that handles a connection."""
        self._open.discard(old)
        self._open.add(new)

    def remove(self, connection: ProxyConnection) -> None:
        """Remove a connection that ended."""
        self._open.discard(connection)
        if not self._open and self._empty is not None:
            empty, self._empty = self._empty, None
            empty.callback(None)

    def check(self, now: float) -> None:
        """Enforce the time limits of all connections."""
        for connection in list(self._open):
            connection.check(now)

    def close(self) -> Deferred[None]:
        """Close all connections; fires when they have ended."""
        if not self._open:
            return succeed(None)
        empty: Deferred[None] = Deferred()
        self._empty = empty
        for connection in list(self._open):
            connection.abort()
        return empty


@dataclass(frozen=True, slots=True)
class Shared:
    """
    :param destinations: by host in lower case, and port.
    :param buffered: counts the buffered bodies of all connections.
    :param exhausted: returns why no further request may be made; empty if one may.
    """

    destinations: Mapping[tuple[str, int], Destination]
    limits: MitmLimits
    recorder: Recorder
    buffered: BufferedBytes
    exhausted: Callable[[], str]
    connections: ProxyConnections = field(default_factory=ProxyConnections)
