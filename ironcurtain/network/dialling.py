"""
Connect to a host: resolve its name here, check the addresses, and dial only allowed ones.

A name is resolved anew at each connection and never by the system call that dials, so that no answer of a name server
that comes later (DNS rebinding) is used unchecked.
"""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IProtocol,
    IReactorTCP,
    IReactorTime,
    IResolutionReceiver,
)
from twisted.internet.protocol import Protocol
from zope.interface import implementer

from ironcurtain.errors import Unavailable
from ironcurtain.http.hosts import parse_host
from ironcurtain.http.public import is_public
from ironcurtain.services.stream import adopt

ATTEMPTS = 3
"""Maximum number of addresses tried for one connection."""

CONNECT_SECONDS = 10.0
"""Default time limit in seconds for resolving a name, and for each connection attempt."""


class AddressRefused(Unavailable):
    """
    All addresses of a host are private, or of no kind that may be dialled.

    :param host: the host as it was given.
    :param address: one of its addresses.
    """

    def __init__(self, host: str, address: str) -> None:
        what = host if host == address else f"{host} has the address {address}, which"
        super().__init__(f"{what} is not on the public internet: nothing was sent")
        self.host, self.address = host, address


class DiallingReactor(IReactorTCP, IReactorTime):
    """The parts of a reactor that dialling needs."""


class Dialer:
    """
    :param resolver: resolves host names, anew for each connection.
    :param seconds: time limit for resolving, and for each connection attempt.
    """

    def __init__(self, reactor: DiallingReactor, resolver: IHostnameResolver, seconds: float = CONNECT_SECONDS) -> None:
        self._reactor, self._resolver, self._seconds = reactor, resolver, seconds

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """
        Connect a protocol to a host.

        :param host: a name or an address, an IPv6 address without brackets.
        :param protocol: gets a transport once the connection is established; it is not touched before.
        :param private: whether addresses that are not public are allowed, because a person named this host.
        :raises AddressRefused: the host has no allowed address; nothing was sent.
        :raises DNSLookupError: it has no address at all, or is not a valid host.
        :raises ConnectError: no connection could be made to the first :data:`ATTEMPTS` addresses.
        :raises twisted.internet.defer.TimeoutError: the name was not resolved in time.
        """
        failed: Exception = DNSLookupError(host)
        for address in (await self._vetted(host, private))[:ATTEMPTS]:
            try:
                reached = await connectProtocol(self._endpoint(address, port), _Reached())
            except ConnectError as e:
                failed = e
            else:
                await adopt(reached.taken(), protocol)
                return
        raise failed

    def _endpoint(self, address: str, port: int) -> TCP4ClientEndpoint | TCP6ClientEndpoint:
        kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
        return kind(self._reactor, address, port, self._seconds)

    async def _vetted(self, host: str, private: bool) -> list[str]:
        parsed = parse_host(f"[{host}]" if ":" in host else host)
        if parsed is None:
            return []
        addresses = [parsed.name] if parsed.is_address else await self._resolve(parsed.name)
        vetted = [address for address in addresses if private or is_public(address)]
        if addresses and not vetted:
            raise AddressRefused(host, addresses[0])
        return vetted

    def _resolve(self, name: str) -> Deferred[list[str]]:
        addresses = _Addresses()
        self._resolver.resolveHostName(addresses, name)
        return addresses.found.addTimeout(self._seconds, self._reactor)


@implementer(IResolutionReceiver)
class _Addresses:
    """Collects the addresses of a name."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self.found: Deferred[list[str]] = Deferred()

    def resolutionBegan(self, resolutionInProgress: IHostResolution) -> None:
        pass

    def addressResolved(self, address: IAddress) -> None:
        host: str = address.host  # type: ignore[attr-defined]
        if host not in self._found:
            self._found.append(host)

    def resolutionComplete(self) -> None:
        if not self.found.called:  # it was cancelled by the time limit
            self.found.callback(self._found)


class _Reached(Protocol):
    """Takes a new connection's socket."""

    transport: Any

    def taken(self) -> socket.socket:
        """:returns: the socket, which Twisted's transport gives up."""
        self.transport.setTcpNoDelay(True)
        self.transport.stopReading()
        return socket.socket(fileno=self.transport.getHandle().detach())
