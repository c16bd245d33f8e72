"""Open connections to one provider: find its addresses, vet them, and dial only those."""

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
"""What :mod:`ipaddress` takes for public and is not."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""The prefix under which a network without IPv4 reaches IPv4 addresses (RFC 6052): those decide."""


def is_public(text: str) -> bool:
    """
    :param text: an IPv4 or IPv6 address, without a zone.
    :returns: whether it is one of the public internet. Loopback, private, link-local (where clouds keep credentials),
        multicast and reserved ones are not, nor an IPv6 address with such an IPv4 address inside.
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
"""How many of a provider's addresses are tried for one connection."""


class AddressRefused(Unavailable):
    """All addresses of a provider are inside a network of ours."""


class DiallingReactor(IReactorTCP, IReactorTime):
    """The parts of a reactor that dialling needs."""


class Dialer:
    """
    :param resolver: finds addresses; asked anew for each connection, since answers change.
    :param rule: says where the provider is. Only a gateway that a person configured may have a local address.
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
        :raises AddressRefused: the provider has no address that may be dialled.
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
        await adopt(reached.taken(), upstream.below)
        return await upstream.ready.addTimeout(self._limits.connect_seconds, self._reactor)


@implementer(IResolutionReceiver)
class _Addresses:
    """Gathers what a name resolves to."""

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
        if not self.found.called:  # it took too long
            self.found.callback(self._found)


class _Reached(Protocol):
    """A new connection, of which only the socket is wanted."""

    transport: Any

    def taken(self) -> socket.socket:
        """:returns: the socket, which Twisted's transport, not used any more, does not have from now on."""
        self.transport.setTcpNoDelay(True)
        self.transport.stopReading()
        return socket.socket(fileno=self.transport.getHandle().detach())


def explain(error: BaseException | None, host: str) -> str:
    """:returns: why a provider could not be reached or understood, in words for people."""
    if isinstance(error, AddressRefused):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"{host} cannot be reached: no answer in time"
    known = network_error(error, host) if isinstance(error, Exception) else error
    return str(known) if isinstance(known, ModelError) else f"the connection to {host} failed"
