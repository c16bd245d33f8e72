"""
The HTTP transport below the SDK's client: it bounds and checks the answers of a server, and reads their messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
import httpx2
from mcp.shared.inbound import MCP_METHOD_HEADER
from twisted.internet.interfaces import IReactorTime

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT
from ironcurtain.mcp_proxy.envelope import LISTEN
from ironcurtain.mcp_proxy.http_messages import EventRewriter, MessageReader

STREAM_SECONDS = 1.0
"""Minimum seconds between two notification streams, whatever the server requests."""


AUTHORIZING = "ironcurtain_authorizing"
"""Extension of requests; while it is true, only the authentication uses the answer."""


class UnwantedAnswer(httpx2.RemoteProtocolError):
    """The server sent an answer that is not accepted. The text is for people."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """
    HTTP transport that checks answers.

    :param answered: called with each answer.
    :param reader: returns the reader of an answer's messages, for the request's id; ``None``: answers have no messages.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        clock: IReactorTime,
        answered: Callable[[httpx2.Request, httpx2.Response], None],
        reader: Callable[[codec.Id | None], MessageReader] | None = None,
    ) -> None:
        self._inner, self._clock, self._answered, self._reader = inner, clock, answered, reader
        self._next_stream = 0.0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """:raises UnwantedAnswer: the answer is compressed, or a redirect that is not followed."""
        opens = request.method == "GET" or request.headers.get(MCP_METHOD_HEADER) == LISTEN
        if opens and not request.extensions.get(AUTHORIZING):
            now = self._clock.seconds()
            wait, self._next_stream = self._next_stream - now, max(self._next_stream, now) + STREAM_SECONDS
            await anyio.sleep(max(wait, 0.0))
        response = await self._inner.handle_async_request(request)
        self._answered(request, response)
        if (why := _wrong(request, response)) is not None:
            await response.aclose()
            raise UnwantedAnswer(why)
        response.headers.pop("set-cookie", None)  # it is discarded, so its size does not matter
        response.encoding = "utf-8"
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if not _is_stream(request, response):  # its events are bounded
            response.stream = _BoundedStream(response.stream)
        if self._reader is not None:
            response.stream = await self._read(request, response, self._reader)
        return response

    async def _read(
        self, request: httpx2.Request, response: httpx2.Response, reader: Callable[[codec.Id | None], MessageReader]
    ) -> httpx2.AsyncByteStream:
        """:returns: the stream of an answer with well-formed messages."""
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        identifier = _id_of(await request.aread()) if request.method == "POST" else None
        if _is_stream(request, response):
            return _Events(stream, EventRewriter(reader(identifier).event, OUTBOUND_LIMIT))
        kind = response.headers.get("content-type", "").lower()
        if identifier is None or not kind.startswith("application/json") or response.is_redirect:
            return stream
        answer = reader(identifier)
        return _Body(stream, answer.body if response.status_code < 400 else answer.error)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._inner:
            if (size := size + len(data)) > OUTBOUND_LIMIT:
                raise UnwantedAnswer(f"it sent a message of more than {OUTBOUND_LIMIT} bytes")
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """A complete message."""

    def __init__(self, inner: httpx2.AsyncByteStream, rewrite: Callable[[bytes], bytes]) -> None:
        self._inner, self._rewrite = inner, rewrite

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._rewrite(b"".join([data async for data in self._inner]))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(httpx2.AsyncByteStream):
    """Events with messages."""

    def __init__(self, inner: httpx2.AsyncByteStream, rewriter: EventRewriter) -> None:
        self._inner, self._rewriter = inner, rewriter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._inner:
            yield self._rewriter.feed(data)
        yield self._rewriter.end()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _id_of(content: bytes) -> codec.Id | None:
    try:
        message = codec.parse(content)
    except codec.InvalidMessage:  # such as a request of the login
        return None
    return message.id if isinstance(message, codec.Request) else None


KEEPING = {301: 308, 302: 307}
"""Redirects after which some clients send another method, and those after which all send the same one."""


def _wrong(request: httpx2.Request, response: httpx2.Response) -> str | None:
    if response.headers.get("content-encoding", "identity") != "identity":
        return "it sent a compressed answer, which was not requested"
    return _redirected(request, response) if 300 <= response.status_code < 400 else None


def _redirected(request: httpx2.Request, response: httpx2.Response) -> str | None:
    """
    Let the SDK follow a redirect within the origin with the same method and content.

    :returns: why a redirect is not followed; the SDK's error would contain the complete address.
    """
    status = response.status_code
    try:
        target = request.url.join(response.headers["location"])
    except (KeyError, httpx2.InvalidURL):
        return f"it redirects (HTTP status {status}) without a valid address"
    if (target.scheme, target.host, target.port) != (request.url.scheme, request.url.host, request.url.port):
        origin = str(httpx2.URL(scheme=target.scheme, host=target.host, port=target.port))
        return f"it redirects to another origin, {origin}, which is not followed: correct its url if that is right"
    if target.userinfo and target.userinfo != request.url.userinfo:
        return "it redirects to an address with a user name, which is not followed"
    if request.method != "GET":
        response.status_code = KEEPING.get(status, status)
        if response.status_code not in KEEPING.values():
            return f"it redirects by HTTP status {status}, which does not keep the message: use status 307 or 308"
    return None


def _is_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").lower()
    return response.status_code == 200 and request.method != "DELETE" and kind.startswith("text/event-stream")
