"""What ``ironcurtain doctor`` finds about upstream proxies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ironcurtain.cli.findings import OK, WRONG, Finding
from ironcurtain.cli.output import settings
from ironcurtain.errors import ConfigurationError

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.home.settings import Settings
    from ironcurtain.http.proxies import Proxy
    from ironcurtain.http.upstream_proxies import UpstreamProxies

SECONDS = 10.0
"""Time limit for each step of a trial."""

MEND = 'Correct it, or switch it off: proxy = "none" in [network] of config.toml.'


async def proxy_findings(reactor: Any, where: Home) -> list[Finding]:
    """:returns: which proxies are used, and whether one of them makes a connection to the model."""
    from ironcurtain.http.upstream_proxies import UpstreamProxies

    known = settings(where).settings
    proxies = UpstreamProxies(reactor, known.network, os.environ)
    found = []
    for proxy in dict.fromkeys(proxies.known.by_scheme.values()):
        if isinstance(proxy, ConfigurationError):
            found.append(Finding("proxy", WRONG, str(proxy), MEND))
        else:
            found.append(await _tried(reactor, proxies, proxy, known))
    return found


async def _tried(reactor: Any, proxies: UpstreamProxies, proxy: Proxy, known: Settings) -> Finding:
    from twisted.internet.endpoints import HostnameEndpoint, connectProtocol
    from twisted.internet.protocol import Protocol

    from ironcurtain.http.tunnels import open_tunnel
    from ironcurtain.http.upstream_proxies import ProxyFailed

    target, opened = _model(known), Protocol()
    endpoint = HostnameEndpoint(reactor, proxy.host.name, proxy.port, SECONDS)
    try:
        await open_tunnel(proxies, proxy, target, opened, lambda way: connectProtocol(endpoint, way), reactor, SECONDS)
    except ProxyFailed as e:
        return Finding("proxy", WRONG, str(e), MEND)
    transport: Any = opened.transport
    transport.abortConnection()
    return Finding("proxy", OK, f"{proxy} makes connections, as to {target[0]}")


def _model(known: Settings) -> tuple[str, int]:
    """:returns: host and port of the model in the settings, or of a usual one if that is on this machine."""
    from ironcurtain.home.sections import Provider
    from ironcurtain.http.proxies import is_this_machine
    from ironcurtain.http.urls import read_web_address
    from ironcurtain.llm.dialects import DIALECTS
    from ironcurtain.llm.registry import backends_in_order

    backends, _ = backends_in_order((), "", known.model)
    for name in (*(backend.partition(":")[0] for backend in backends), "anthropic"):
        table = known.providers.get(name, Provider())
        usual = DIALECTS[name].default_url if name in DIALECTS else ""
        url = table.base_url or (f"https://{table.host}:{table.port}" if table.host else usual)
        if url and not is_this_machine((address := read_web_address(url)).host):
            return address.host.name, address.port
    return read_web_address(DIALECTS["anthropic"].default_url).host.name, 443
