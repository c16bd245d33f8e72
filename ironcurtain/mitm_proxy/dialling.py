"""Open connections to one provider: find its addresses, vet them, and dial only those."""

from __future__ import annotations

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
from ironcurtain.mitm_proxy.addresses import is_public
from ironcurtain.mitm_proxy.limits import Limits
from ironcurtain.mitm_proxy.tls import Side
from ironcurtain.mitm_proxy.upstream import Keeper, Upstream
from ironcurtain.providers.rules import ProviderRule
from ironcurtain.services.stream import adopt

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
        limits: Limits,
    ) -> None:
        self._reactor, self._resolver, self._rule = reactor, resolver, rule
        self._side, self._limits = side, limits

    async def dial(self, keeper: Keeper) -> Upstream:
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

    async def _connect(self, address: str, keeper: Keeper) -> Upstream:
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
