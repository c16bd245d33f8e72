"""A resolver that answers what a test says."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer


@implementer(IHostnameResolver)
class Names:
    """Resolves every name to what a test says."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: tuple[str, ...] = addresses
        self.asked: list[str] = []

    def resolveHostName(self, resolutionReceiver: Any, hostName: str, *more: Any, **options: Any) -> Any:
        self.asked.append(hostName)
        resolutionReceiver.resolutionBegan(self)
        for address in self.addresses:
            kind = IPv6Address if ":" in address else IPv4Address
            resolutionReceiver.addressResolved(kind("TCP", address, 0))
        resolutionReceiver.resolutionComplete()
        return self


@implementer(IHostnameResolver)
class SilentNames:
    """Never answers."""

    def resolveHostName(self, resolutionReceiver: Any, hostName: str, *more: Any, **options: Any) -> Any:
        resolutionReceiver.resolutionBegan(self)
        return self
