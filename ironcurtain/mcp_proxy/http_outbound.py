"""The way of HTTP requests of the MCP SDK to servers: directly, or through an upstream proxy."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any, Final

import httpx2

from ironcurtain.errors import ConfigurationError
from ironcurtain.http.proxies import Proxy
from ironcurtain.http.upstream_proxies import ProxyFailed, UpstreamProxies
from ironcurtain.mcp_proxy.http_tunnels import TunnellingTransport

_PORTS: Final = {"https": 443, "http": 80}


class NoWayThrough(httpx2.ConnectError):
    """There is no connection through the upstream proxy. The text is for people."""


class ProxyingTransport(httpx2.AsyncBaseTransport):
    """
    Sends each request as the settings say for its host.

    :param context: verifies servers.
    :param options: of each ``AsyncHTTPTransport``: ``limits`` and ``socket_options``.
    """

    def __init__(self, context: ssl.SSLContext, proxies: UpstreamProxies, **options: Any) -> None:
        self._context, self._proxies, self._options = context, proxies, options
        self._transports: dict[Proxy | None, httpx2.AsyncBaseTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """:raises NoWayThrough: the proxy cannot be used, cannot be reached, or refuses."""
        host, port = request.url.host, request.url.port or _PORTS[request.url.scheme]
        try:
            proxy = self._proxies.choose(request.url.scheme, host, port)
            if proxy not in self._transports:
                self._transports[proxy] = self._make(proxy)
        except (ProxyFailed, ConfigurationError) as e:
            raise NoWayThrough(str(e)) from None
        try:
            return await self._transports[proxy].handle_async_request(request)
        except ProxyFailed as e:
            raise NoWayThrough(str(e)) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as e:
            if proxy is None or any(isinstance(cause, ssl.SSLError) for cause in causes(e)):
                raise
            raise NoWayThrough(f"the proxy {proxy} cannot be reached") from e

    def _make(self, proxy: Proxy | None) -> httpx2.AsyncBaseTransport:
        if proxy is None:
            return httpx2.AsyncHTTPTransport(verify=self._context, trust_env=False, **self._options)
        return TunnellingTransport(self._context, self._proxies, proxy, **self._options)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """:returns: an exception and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
