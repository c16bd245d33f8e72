"""A model behind HTTPS that answers with Server-Sent Events: transport, time limits and retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse

from ironcurtain.http.connections import RequestConnectionPool
from ironcurtain.http.outbound import Outbound
from ironcurtain.http.sse import EventParser
from ironcurtain.http.streaming import Watch, deliver
from ironcurtain.llm.api_paths import request_path
from ironcurtain.llm.dialect import Dialect, ReplyInProgress, key_value, require_answer
from ironcurtain.llm.failures import RetryPolicy, asked_delay, network_error
from ironcurtain.llm.model import (
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    Retrying,
    TokenUsage,
    UsageSeen,
)
from ironcurtain.secrets.redaction import Redactor, Secret

STALL_SECONDS: Final = 120.0
"""Default time limit in seconds for silence of a server."""

ERROR_LIMIT: Final = 64 * 1024
"""Maximum number of bytes read of an error response."""


class HttpModelClient:
    """
    Uses one dialect over verified HTTPS, or without TLS to a gateway at a loopback address.

    :param dialect: the provider's wire format.
    :param base_url: URL of the API.
    :param key_header: the header with the key, in lower case; empty: the dialect's.
    :param key: revealed only when the headers of a request are written; ``None`` for a server that needs none.
    :param outbound: sends the requests.
    :param reactor: delivers the responses.
    :param clock: for delays and the silence limit; the reactor, or a ``Clock``.
    :param random: returns numbers from 0 to 1.
    :param stall: time limit in seconds for silence during an answer.
    """

    log = Logger()

    def __init__(
        self,
        dialect: Dialect,
        *,
        base_url: str,
        key: Secret | None,
        key_header: str = "",
        outbound: Outbound,
        reactor: Any,
        clock: IReactorTime,
        random: Callable[[], float],
        retries: RetryPolicy | None = None,
        stall: float = STALL_SECONDS,
    ) -> None:
        self.name = dialect.name
        self._dialect, self._base, self._key, self._outbound = dialect, urlsplit(base_url), key, outbound
        self._key_header = key_header or dialect.key_header
        self._host = self._base.hostname or base_url
        self._reactor, self._clock, self._random = reactor, clock, random
        self._retries, self._stall = retries or RetryPolicy(), stall
        self._redactor = Redactor([key] if key is not None else [])

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        """See :meth:`ironcurtain.llm.model.ModelClient.converse`."""
        spent, failed = TokenUsage(), 0
        while True:
            reply = self._dialect.reply()
            try:
                whole = await self._attempt(request, reply, _adding(spent, notify))
                return replace(whole, usage=spent + whole.usage)
            except ModelError as e:
                e.args = (self._redactor.text(str(e)),)  # servers may repeat what they were sent
                spent, failed = spent + reply.usage, failed + 1
                delay = self._delay(e, reply, failed)
                if delay is None:
                    e.retryable, e.usage = e.retryable and not reply.shown, spent
                    # The frames below contain the server's data, which some tracebacks would show.
                    raise e.with_traceback(None)  # noqa: B904
                reason = str(e)
            self.log.info("{provider}, attempt {number}: {reason}", provider=self.name, number=failed, reason=reason)
            notify(Retrying(delay, reason))
            await deferLater(self._clock, delay)

    def _delay(self, error: ModelError, reply: ReplyInProgress, failed: int) -> float | None:
        if not error.retryable or reply.shown:
            return None
        return self._retries.delay(failed, error.retry_after, self._random)

    async def _attempt(
        self, request: ModelRequest, reply: ReplyInProgress, notify: Callable[[ModelEvent], None]
    ) -> ModelReply:
        watch, connections = Watch(self._clock, self._stall), RequestConnectionPool(self._reactor)
        try:
            response = await watch.over(self._send(connections, request))
            if response.code != 200:
                raise await self._refusal(request, response, watch)
            await watch.over(deliver(self._reactor, response, self._reader(reply, notify, watch)))
            if reply.reply is None:
                for event in reply.close():
                    notify(event)
        except ModelError:
            raise
        except Exception as e:
            if watch.expired:
                raise self._stalled() from None
            raise network_error(e, self._host) from None
        finally:
            watch.stop()
            connections.drop()
        if reply.reply is None:
            raise self._cut_short(response)
        require_answer(reply.reply)
        return reply.reply

    def _send(self, connections: RequestConnectionPool, request: ModelRequest) -> Deferred[IResponse]:
        return self._outbound.request(
            connections, "POST", self._address(request), self._headers(request), self._dialect.body(request)
        )

    def _address(self, request: ModelRequest) -> str:
        path = request_path(self._base.path, self._dialect.path(request))
        return f"{self._base.scheme}://{self._base.netloc}{path}"

    def _headers(self, request: ModelRequest) -> Headers:
        if self._key is not None and not _sendable(self._key):
            raise ModelError("authentication", f"the key from {self._origin} is empty or has characters no key has")
        common = {"content-type": "application/json", "accept": "text/event-stream", "user-agent": "ironcurtain"}
        if request.traceparent:
            common["traceparent"] = request.traceparent
        headers = Headers({name: [value] for name, value in {**common, **self._dialect.headers}.items()})
        if self._key is not None:
            headers.setRawHeaders(self._key_header, [key_value(self._key_header, self._key.reveal())])
        return headers

    def _reader(
        self, reply: ReplyInProgress, notify: Callable[[ModelEvent], None], watch: Watch
    ) -> Callable[[bytes], bool]:
        parser = EventParser()

        def take(data: bytes) -> bool:
            watch.alive()
            for received in parser.feed(data):
                for event in reply.feed(received):
                    notify(event)
                # A listener may cancel the request, and then wants no further events.
                if watch.stopped or reply.reply is not None:
                    return True
            return False

        return take

    async def _refusal(self, request: ModelRequest, response: IResponse, watch: Watch) -> ModelError:
        body = bytearray()

        def take(data: bytes) -> bool:
            watch.alive()
            body.extend(data[: ERROR_LIMIT - len(body)])
            return len(body) >= ERROR_LIMIT

        await watch.over(deliver(self._reactor, response, take))
        said = self._dialect.failure(response.code, bytes(body))
        detail = str(said)
        asked = asked_delay(_header(response, "retry-after"), _header(response, "date"))
        asked = said.retry_after if asked is None else asked
        if said.kind == "authentication" and self._key is None:
            detail = f"{self._host} requires a key: set providers.{self.name}.key. {detail}"
        elif said.kind == "authentication":
            detail = f"the key from {self._origin} was refused. {detail}. Check that it is valid for this model."
        elif response.code == 404:
            detail = f"{detail}; {self._address(request).partition('?')[0]} was asked: check the model and base_url"
        if asked is not None:
            detail = f"{detail}; it requests a delay of {asked:g} s"
        return ModelError(said.kind, detail, retryable=said.retryable, retry_after=asked)

    @property
    def _origin(self) -> str:
        return (self._key.origin if self._key is not None else "") or "the settings"

    def _stalled(self) -> ModelError:
        return ModelError("stalled", f"{self._host} has sent nothing for {self._stall:g} s", retryable=True)

    def _cut_short(self, response: IResponse) -> ModelError:
        kind = _header(response, "content-type") or "no content type"
        if "text/event-stream" not in kind:
            return ModelError("network", f"{self._host} sent {kind} instead of a stream of events; check base_url")
        return ModelError("network", f"{self._host} ended its answer prematurely", retryable=True)


def _sendable(key: Secret) -> bool:
    # A key with a line end or a space was read by mistake: never send it. The check has its own frame, so that no
    # traceback with local variables can show the key.
    value = key.reveal()
    return bool(value) and value.isascii() and value.isprintable() and " " not in value


def _adding(spent: TokenUsage, notify: Callable[[ModelEvent], None]) -> Callable[[ModelEvent], None]:
    def with_spent(event: ModelEvent) -> None:
        notify(UsageSeen(spent + event.usage) if isinstance(event, UsageSeen) else event)

    return with_spent


def _header(response: IResponse, name: str) -> str | None:
    values = response.headers.getRawHeaders(name)
    return values[0] if values else None
