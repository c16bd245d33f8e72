"""Connect to a host, and explain why that failed."""

from __future__ import annotations

import msgspec
from twisted.internet.defer import TimeoutError
from twisted.internet.interfaces import IReactorTime

from ironcurtain.llm.failures import network_error
from ironcurtain.llm.model import ModelError
from ironcurtain.mitm_proxy.tls import Side
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner
from ironcurtain.network.dialling import AddressRefused, Dialer


class Route(msgspec.Struct, frozen=True):
    """
    The way to one host.

    :param private: whether it may have an address that is not public.
    :param side: the proxy's side of the connections.
    :param seconds: time limit for the TLS handshake.
    """

    host: str
    port: int
    private: bool
    side: Side
    seconds: float


async def dial(dialer: Dialer, route: Route, clock: IReactorTime, keeper: UpstreamOwner) -> Upstream:
    """
    :returns: a verified connection.
    :raises AddressRefused: the host has no allowed address.
    """
    upstream = Upstream(route.side, keeper)
    try:
        await dialer.connect(route.host, route.port, upstream.below, private=route.private)
    except BaseException:
        upstream.ready.addErrback(lambda _: None)  # its connection may still be lost, and nobody waits for it
        raise
    return await upstream.ready.addTimeout(route.seconds, clock)


def explain(error: BaseException | None, host: str) -> str:
    """:returns: a sentence on why a host could not be reached, or why its response was invalid."""
    if isinstance(error, AddressRefused):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"{host} cannot be reached: no answer in time"
    known = network_error(error, host) if isinstance(error, Exception) else error
    return str(known) if isinstance(known, ModelError) else f"the connection to {host} failed"
