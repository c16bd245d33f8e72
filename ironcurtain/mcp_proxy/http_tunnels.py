"""Requests of the MCP SDK through an upstream proxy: each connection is a :mod:`tunnel <ironcurtain.http.tunnels>`."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2
from twisted.internet.defer import Deferred

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.head import HeadReader
from ironcurtain.http.proxies import Proxy
from ironcurtain.http.trust import ssl_context
from ironcurtain.http.tunnels import HEAD_LIMIT, prepare
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.services.asyncio_bridge import to_asyncio


class TunnellingTransport(httpx2.AsyncBaseTransport):
    """
    Does what ``AsyncHTTPTransport`` does. That one authenticates at proxies by Basic only, and asks them for plain HTTP
    without a tunnel.

    :param context: verifies servers.
    :param proxies: have the credentials.
    :param limits: of its connections.
    :param socket_options: of each connection.
    :raises ConfigurationError: the file of certificates for the proxy cannot be used.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        proxies: UpstreamProxies,
        proxy: Proxy,
        limits: httpx2.Limits | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> None:
        limits = limits or httpx2.Limits(max_connections=100, max_keepalive_connections=20)
        self._connections = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            socket_options=socket_options,
            network_backend=_Tunnels(proxies, proxy),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """:raises ProxyFailed: there is no tunnel."""
        url = request.url
        sent = httpcore2.Request(
            request.method,
            httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translated():
            answer = await self._connections.handle_async_request(sent)
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._connections.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream: AsyncIterable[bytes] = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()  # type: ignore[attr-defined]


@contextmanager
def _translated() -> Iterator[None]:
    """Raise an exception of httpcore as the one of httpx with its name."""
    try:
        yield
    except Exception as e:
        if (same := getattr(httpx2, type(e).__name__, None)) is None or not type(e).__module__.startswith("httpcore2"):
            raise
        raise same(str(e)) from e


class _Tunnels(httpcore2.AnyIOBackend):
    """Connects to servers through a proxy."""

    def __init__(self, proxies: UpstreamProxies, proxy: Proxy) -> None:
        self._proxies, self._proxy = proxies, proxy
        self._context = ssl_context(proxy.ca_file) if proxy.scheme == "https" else None

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *arguments: Any, **options: Any
    ) -> httpcore2.AsyncNetworkStream:
        """:raises ProxyFailed: there is no tunnel."""
        proxy, target = self._proxy, (host.strip("[]"), port)
        request, judge = await to_asyncio(Deferred.fromCoroutine(prepare(self._proxies, proxy, target)))
        stream = await super().connect_tcp(proxy.host.name, proxy.port, timeout, *arguments, **options)
        try:
            if self._context is not None:
                stream = await stream.start_tls(self._context, proxy.host.name, timeout)
            await stream.write(request, timeout)
            if (failed := judge(await _head(stream, timeout))) is not None:
                raise failed
        except BaseException:
            await stream.aclose()
            raise
        return stream


async def _head(stream: httpcore2.AsyncNetworkStream, timeout: float | None) -> bytes:
    """:returns: the head of the proxy's answer; empty if there is none, or more than that."""
    reader, found = HeadReader(HEAD_LIMIT), None
    while found is None:
        data = await stream.read(HEAD_LIMIT, timeout)
        try:
            found = reader.feed(data) if data else (b"", b"")
        except ProtocolViolation:  # too long
            found = b"", b""
    head, rest = found
    return b"" if rest else head  # a server of TLS or HTTP does not speak first
