"""One request that a responder answers here, instead of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import IronCurtainError
from ironcurtain.http.head import HttpRequest
from ironcurtain.mitm_proxy.exchange import ExchangeClient, ExchangeObserver
from ironcurtain.network.responder import LocalResponse, Responder
from ironcurtain.providers.provider import RequestRefusal

FAILED: Final = RequestRefusal(502, "responder-failed", "the request failed here, not at the host: see the log")


class LocalExchange:
    """See :class:`~ironcurtain.mitm_proxy.exchange.ActiveRequest`. The body of the request is discarded."""

    log = Logger()

    def __init__(
        self, client: ExchangeClient, responder: Responder, request: HttpRequest, observer: ExchangeObserver
    ) -> None:
        self._client, self._responder, self._request, self._host = client, responder, request, observer.host
        self._began = observer.now()
        self._work: Deferred[None] | None = None
        self._resumed: Deferred[None] | None = None
        self._begun = self._over = False
        self.active = True

    @property
    def began(self) -> float:
        """Start time in seconds of the clock."""
        return self._began

    def send(self, payload: bytes, last: bool, release: Callable[[], None] | None = None) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ActiveRequest`."""
        if release is not None:
            release()
        if last and self._work is None:
            self._work = Deferred.fromCoroutine(self._answer()).addErrback(self._failed)

    def choke(self, choked: bool) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ActiveRequest`."""
        resumed, self._resumed = self._resumed, None
        if choked:
            self._resumed = resumed or Deferred()
        elif resumed is not None:
            resumed.callback(None)

    def silent(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ActiveRequest`."""
        self.fail(RequestRefusal(504, "responder-silent", f"the answer for {self._host} did not come in time"))

    def fail(self, refusal: RequestRefusal) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ActiveRequest`."""
        if self._over:
            return
        self.cancel()
        if self._begun:
            self._client.broken()
        else:
            self._client.refuse(refusal)

    def cancel(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ActiveRequest`."""
        self._over = True
        if self._work is not None:
            self._work.cancel()

    async def _answer(self) -> None:
        response = await self._responder.respond(self._request.head)
        if isinstance(response, RequestRefusal):
            self._over = True
            self._client.refuse(response)
            return
        try:
            await self._write(response)
        finally:
            close = getattr(response.body, "aclose", None)
            if close is not None:
                await close()

    async def _write(self, response: LocalResponse) -> None:
        has_body = self._request.head.method != "HEAD" and response.status not in (204, 304)
        chunked = has_body and response.length is None
        self._begun = True
        self._client.write(_head(response, chunked, self._request.last))
        left = response.length or 0
        async for piece in response.body if has_body else _none():
            self.active = True
            left -= len(piece)
            if response.length is not None and left < 0:
                raise ValueError("the body is longer than announced")
            if piece:
                self._client.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if self._client.choked:
                await self._until_resumed()
        if has_body and left and response.length is not None:
            raise ValueError("the body is shorter than announced")
        if chunked:
            self._client.write(b"0\r\n\r\n")
        self._over = True
        self._client.over()

    def _until_resumed(self) -> Deferred[None]:
        if self._resumed is None:
            self._resumed = Deferred()
        return self._resumed

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None and not self._over:
            self._work, error = None, failure.value
            known = isinstance(error, IronCurtainError)
            if known:
                self.log.warn("a response for {host} broke off: {error}", host=self._host, error=error)
            else:
                self.log.failure("a response for {host} failed", failure, host=self._host)
            self.fail(RequestRefusal(FAILED.status, FAILED.code, str(error)) if known else FAILED)


async def _none() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece


def _head(response: LocalResponse, chunked: bool, last: bool) -> bytes:
    phrase = response.phrase or HTTPStatus(response.status).phrase
    lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {value}" for name, value in response.headers)]
    if chunked:
        lines.append("transfer-encoding: chunked")
    elif response.length is not None:
        lines.append(f"content-length: {response.length}")
    if last:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
