"""The way of HTTP requests of the MCP SDK to servers: directly, or through an upstream proxy."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any, Final

import httpx2
from twisted.internet.defer import Deferred

from ironcurtain.errors import ConfigurationError
from ironcurtain.http.proxies import Proxy
from ironcurtain.http.trust import ssl_context
from ironcurtain.http.tunnels import refusal
from ironcurtain.http.upstream_proxies import ProxyFailed, UpstreamProxies
from ironcurtain.services.asyncio_bridge import to_asyncio

_PORTS: Final = {"https": 443, "http": 80}


class NoWayThrough(httpx2.ConnectError):
    """There is no connection through the upstream proxy. The text is for people."""


class ProxyingTransport(httpx2.AsyncBaseTransport):
    """
    Sends each request as the settings say for its host.

    :param context: verifies servers.
    :param options: of each ``AsyncHTTPTransport``.
    """

    def __init__(self, context: ssl.SSLContext, proxies: UpstreamProxies, **options: Any) -> None:
        self._proxies, self._options = proxies, {"verify": context, "trust_env": False, **options}
        self._transports: dict[Proxy | None, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """:raises NoWayThrough: the proxy cannot be used, cannot be reached, or refuses."""
        host, port = request.url.host, request.url.port or _PORTS[request.url.scheme]
        try:
            proxy = self._proxies.choose(request.url.scheme, host, port)
            if proxy not in self._transports:
                made = await self._make(proxy)
                self._transports.setdefault(proxy, made)  # another request may have been faster
        except (ProxyFailed, ConfigurationError) as e:
            raise NoWayThrough(str(e)) from None
        try:
            return await self._transports[proxy].handle_async_request(request)
        except httpx2.ProxyError as e:
            assert proxy is not None
            raise NoWayThrough(_refusal(str(e), proxy, f"{host}:{port}")) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as e:
            if proxy is None or any(isinstance(cause, ssl.SSLError) for cause in causes(e)):
                raise
            raise NoWayThrough(f"the proxy {proxy} cannot be reached") from e

    async def _make(self, proxy: Proxy | None) -> httpx2.AsyncHTTPTransport:
        if proxy is None:
            return httpx2.AsyncHTTPTransport(**self._options)
        secret = await to_asyncio(Deferred.fromCoroutine(self._proxies.credentials(proxy)))
        user, _, password = ("" if secret is None else secret.reveal()).partition(":")
        return httpx2.AsyncHTTPTransport(
            proxy=httpx2.Proxy(
                proxy.url,
                ssl_context=ssl_context(proxy.ca_file) if proxy.scheme == "https" else None,
                auth=None if secret is None else (user, password),
            ),
            **self._options,
        )

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """:returns: an exception and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refusal(said: str, proxy: Proxy, target: str) -> str:
    """:param said: by the library: the status and the phrase."""
    status = said[:3]
    if not (status.isascii() and status.isdigit()):
        return f"the proxy {proxy} does not answer as an HTTP proxy does"
    return str(refusal(int(status), (), proxy, target, bool(proxy.user)))
