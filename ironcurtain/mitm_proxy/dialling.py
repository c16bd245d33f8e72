"""Connect to a provider, and explain why that failed."""

from __future__ import annotations

from twisted.internet.defer import TimeoutError
from twisted.internet.interfaces import IReactorTime

from ironcurtain.llm.failures import network_error
from ironcurtain.llm.model import ModelError
from ironcurtain.mitm_proxy.tls import Side
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner
from ironcurtain.network.dialling import AddressRefused, Dialer
from ironcurtain.providers.rules import ProviderRule


async def dial(
    dialer: Dialer, rule: ProviderRule, side: Side, clock: IReactorTime, seconds: float, keeper: UpstreamOwner
) -> Upstream:
    """
    :param rule: the provider's rule. Only a configured gateway may have a private address.
    :param side: the proxy's side of the connection.
    :param seconds: time limit for the TLS handshake.
    :returns: a verified connection.
    :raises AddressRefused: the provider has no allowed address.
    """
    upstream = Upstream(side, keeper)
    try:
        await dialer.connect(rule.upstream_host, rule.upstream_port, upstream.below, private=rule.gateway)
    except BaseException:
        upstream.ready.addErrback(lambda _: None)  # its connection may still be lost, and nobody waits for it
        raise
    return await upstream.ready.addTimeout(seconds, clock)


def explain(error: BaseException | None, host: str) -> str:
    """:returns: a sentence on why a provider could not be reached, or why its response was invalid."""
    if isinstance(error, AddressRefused):
        return f"{error}. If it is a gateway of yours, set it as base_url in the provider's settings."
    if isinstance(error, TimeoutError):
        return f"{host} cannot be reached: no answer in time"
    known = network_error(error, host) if isinstance(error, Exception) else error
    return str(known) if isinstance(known, ModelError) else f"the connection to {host} failed"
