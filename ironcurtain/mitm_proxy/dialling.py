"""Connect to a provider: resolve its host, check the addresses, and dial only allowed ones."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IReactorTCP,
    IReactorTime,
    IResolutionReceiver,
)
from twisted.internet.protocol import Protocol
from zope.interface import implementer

from ironcurtain.errors import Unavailable
from ironcurtain.llm.failures import network_error
from ironcurtain.llm.model import ModelError
from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.tls import Side
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner
from ironcurtain.providers.rules import ProviderRule
from ironcurtain.services.stream import adopt

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # Azure's own services, on an address that looks public
            "192.88.99.0/24",  # 6to4 relays (RFC 7526)
            "64:ff9b:1::/48",  # local NAT64 (RFC 8215)
            "fec0::/10",  # site-local (RFC 3879)
        ),
    )
)
"""Networks that :mod:`ipaddress` considers public although they are not."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The prefix for IPv4 addresses in IPv6-only networks (RFC 6052); the embedded address is checked."""


def is_public(text: str) -> bool:
    """
    :param text: an IPv4 or IPv6 address, without a zone.
    :returns: whether it is on the public internet. Loopback, private, link-local (where clouds serve credentials),
        multicast and reserved addresses are not, nor is an IPv6 address that embeds such an IPv4 address.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address in _NAT64:
        return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return all(map(_is_public, (address, *_inside(address))))


def _is_public(address: Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _NOT_PUBLIC)
    )


def _inside(address: Address) -> list[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = (address.ipv4_mapped, address.sixtofour, *(address.teredo or ()))
    return [inner for inner in found if inner is not None]


ATTEMPTS = 3
"""Maximum number of addresses tried for one connection."""


class AddressRefused(Unavailable):
    """All addresses of a provider are in private networks."""


class DiallingReactor(IReactorTCP, IReactorTime):
    """The parts of a reactor that dialling needs."""


class Dialer:
    """
    :param resolver: resolves host names, anew for each connection.
    :param rule: the provider's rule. Only a configured gateway may have a private address.
    """

    def __init__(
        self,
        reactor: DiallingReactor,
        resolver: IHostnameResolver,
        rule: ProviderRule,
        side: Side,
        limits: MitmLimits,
    ) -> None:
        self._reactor, self._resolver, self._rule = reactor, resolver, rule
        self._side, self._limits = side, limits

    async def dial(self, keeper: UpstreamOwner) -> Upstream:
        """
        :returns: a verified connection.
        :raises AddressRefused: the provider has no allowed address.
        """
        failed: Exception = DNSLookupError(self._rule.upstream_host)
        for address in (await self._vetted())[:ATTEMPTS]:
            try:
                return await self._connect(address, keeper)
            except ConnectError as e:
                failed = e
        raise failed

    async def _vetted(self) -> list[str]:
        host = self._rule.upstream_host
        found = await self._resolve(host)
        vetted = [address for address in found if self._rule.gateway or is_public(address)]
        if found and not vetted:
            raise AddressRefused(
                f"{host} has the address {found[0]}, which is not on the public internet: nothing was sent. "
                "If it is a gateway of yours, set it as base_url in the provider's settings."
            )
        return vetted

    def _resolve(self, host: str) -> Deferred[list[str]]:
        addresses = _Addresses()
        self._resolver.resolveHostName(addresses, host)
        return addresses.found.addTimeout(self._limits.connect_seconds, self._reactor)

    async def _connect(self, address: str, keeper: UpstreamOwner) -> Upstream:
        endpoint = (TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint)(
            self._reactor, address, self._rule.upstream_port, self._limits.connect_seconds
        )
        reached = await connectProtocol(endpoint, _Reached())
        upstream = Upstream(self._side, keeper)
        try:
            await adopt(reached.taken(), upstream.below)
        except BaseException:
            upstream.ready.addErrback(lambda _: None)  # its connection may still be lost, and nobody waits for it
            raise
        return await upstream.ready.addTimeout(self._limits.connect_seconds, self._reactor)


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


def explain(error: BaseException | None, host: str) -> str:
    """:returns: a sentence on why a provider could not be reached, or why its response was invalid."""
    if isinstance(error, AddressRefused):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"{host} cannot be reached: no answer in time"
    known = network_error(error, host) if isinstance(error, Exception) else error
    return str(known) if isinstance(known, ModelError) else f"the connection to {host} failed"
