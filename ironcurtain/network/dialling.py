"""
Connect to a host: resolve its name here, check the addresses, and dial only allowed ones.

A name is resolved anew at each connection and never by the system call that dials, so that no answer of a name server
that comes later (DNS rebinding) is used unchecked. Where an upstream proxy makes the connection, it is the proxy that
resolves names: only addresses that stand in the place of a name are checked here.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
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
from ironcurtain.http.hosts import Host, parse_host
from ironcurtain.http.proxies import Proxy
from ironcurtain.http.public import is_public
from ironcurtain.http.tunnels import open_tunnel
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.services.stream import adopt

ATTEMPTS = 3
"""Maximum number of addresses tried for one connection."""

CONNECT_SECONDS = 10.0
"""Default time limit in seconds for resolving a name, and for each connection attempt."""

PLAIN_PORT = 80
"""The port of connections that the proxy for ``http`` URLs makes; all others are made by that for ``https``."""


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
    :param seconds: time limit for resolving, for each connection attempt, and for the answer of a proxy.
    """

    def __init__(
        self,
        reactor: DiallingReactor,
        resolver: IHostnameResolver,
        proxies: UpstreamProxies,
        seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._reactor, self._resolver, self._seconds, self._proxies = reactor, resolver, seconds, proxies

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """
        Connect a protocol to a host.

        :param host: a name or an address, an IPv6 address without brackets.
        :param protocol: gets a transport once the connection is established; it is not touched before.
        :param private: whether addresses that are not public are allowed, because a person named this host.
        :raises AddressRefused: the host has no allowed address; nothing was sent.
        :raises DNSLookupError: it has no address at all, or is not a valid host.
        :raises ConnectError: no connection could be made to the first :data:`ATTEMPTS` addresses, or through the proxy
            (:class:`~ironcurtain.http.upstream_proxies.ProxyFailed`).
        :raises twisted.internet.defer.TimeoutError: the name was not resolved in time.
        """
        if (parsed := parse_host(f"[{host}]" if ":" in host else host)) is None:
            raise DNSLookupError(host)
        proxies, scheme = self._proxies, "http" if port == PLAIN_PORT else "https"
        if (proxy := proxies.choose(scheme, parsed.name, port)) is None:
            await self._dial(host, await self._vetted(host, parsed, private), port, protocol)
            return
        if parsed.is_address:
            await self._vetted(host, parsed, private)
        reach, target = partial(self._dial_proxy, proxy), (parsed.name, port)
        await open_tunnel(proxies, proxy, target, protocol, reach, self._reactor, self._seconds)

    async def _vetted(self, host: str, parsed: Host, private: bool) -> list[str]:
        addresses = await self._addresses(parsed)
        vetted = [address for address in addresses if private or is_public(address)]
        if addresses and not vetted:
            raise AddressRefused(host, addresses[0])
        return vetted

    async def _addresses(self, host: Host) -> list[str]:
        if host.is_address:
            return [host.name]
        addresses = _Addresses()
        self._resolver.resolveHostName(addresses, host.name)
        return await addresses.found.addTimeout(self._seconds, self._reactor)

    async def _dial_proxy(self, proxy: Proxy, protocol: IProtocol) -> None:
        await self._dial(proxy.host.name, await self._addresses(proxy.host), proxy.port, protocol)

    async def _dial(self, host: str, addresses: Sequence[str], port: int, protocol: IProtocol) -> None:
        failed: Exception = DNSLookupError(host)
        for address in addresses[:ATTEMPTS]:
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
