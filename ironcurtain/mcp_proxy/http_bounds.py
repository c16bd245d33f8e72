"""What a server behind HTTP may cost and set in motion, whatever it answers: bounds around the SDK's own client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import anyio
import httpx2
from twisted.internet.interfaces import IReactorTime

from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT

STREAM_SECONDS = 1.0
"""Least time from one stream of notices to the next, whatever the server asks for."""


class UnwantedAnswer(httpx2.RemoteProtocolError):
    """The server answered in a way that is not taken. Its text is for people."""


class Bounded(httpx2.AsyncBaseTransport):
    """
    HTTP itself, watched.

    :param answered: hears of each answer.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        clock: IReactorTime,
        answered: Callable[[httpx2.Request, httpx2.Response], None],
    ) -> None:
        self._inner, self._clock, self._answered = inner, clock, answered
        self._next_stream = 0.0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """
        :raises UnwantedAnswer: the answer is compressed, or sends us elsewhere.
        """
        if request.method == "GET":
            now = self._clock.seconds()
            wait, self._next_stream = self._next_stream - now, max(self._next_stream, now) + STREAM_SECONDS
            await anyio.sleep(max(wait, 0.0))
        response = await self._inner.handle_async_request(request)
        self._answered(request, response)
        if (why := _wrong(request, response)) is not None:
            await response.aclose()
            raise UnwantedAnswer(why)
        response.headers.pop("set-cookie", None)  # nothing of it is kept, and so nothing of it grows
        response.encoding = "utf-8"
        if not _is_stream(request, response):  # whose events are bounded
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream)
        return response

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


def _wrong(request: httpx2.Request, response: httpx2.Response) -> str | None:
    if response.headers.get("content-encoding", "identity") != "identity":
        return "it sent a compressed answer, which nobody asked for"
    if 300 <= response.status_code < 400 and not _stays(request, response):
        return "it redirects to another place, which is not followed"
    return None


def _stays(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether a redirect is one that the SDK follows; of others it would tell with their whole address."""
    try:
        target = request.url.join(response.headers.get("location", ""))
    except httpx2.InvalidURL:
        return False
    same = (target.scheme, target.host, target.port) == (request.url.scheme, request.url.host, request.url.port)
    return same and not target.userinfo and (response.status_code in (307, 308) or request.method == "GET")


def _is_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").lower()
    return response.status_code == 200 and request.method != "DELETE" and kind.startswith("text/event-stream")
