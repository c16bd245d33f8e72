"""One allowed request and its response."""

from __future__ import annotations

import typing
from collections.abc import Callable
from enum import Enum, auto
from http import HTTPStatus
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.accounts.source import Token
from ironcurtain.errors import IronCurtainError, ProtocolViolation
from ironcurtain.mitm_proxy.account_tokens import AccountTokens
from ironcurtain.mitm_proxy.answer import AnswerRelay
from ironcurtain.mitm_proxy.dialling import explain
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamPool
from ironcurtain.providers.provider import RequestRefusal


class ExchangeClient(typing.Protocol):
    """The agent's side of an exchange."""

    choked: bool
    """Whether the agent does not read fast enough."""

    def write(self, data: bytes) -> None:
        """Send bytes of the response."""

    def pause(self, paused: bool) -> None:
        """Pause or resume reading the request's body."""

    def over(self) -> None:
        """The complete response has been written."""

    def refuse(self, refusal: RequestRefusal) -> None:
        """Answer with a refusal. No part of a response has been sent."""

    def broken(self) -> None:
        """The response that has begun breaks off."""


class Outgoing(NamedTuple):
    """
    A request to the provider.

    :param head: returns the complete head, with a token if it needs one, including the blank line.
    :param chunked: whether the body is sent in chunks.
    """

    request_id: str
    head: Callable[[Token | None], bytes]
    chunked: bool


class ExchangeObserver(typing.Protocol):
    """
    Records exchanges with one host.

    :ivar host: as the proxy connects to it, for messages.
    """

    host: str

    def now(self) -> float:
        """:returns: seconds of the clock."""

    def unreachable(self, error: BaseException | None) -> RequestRefusal:
        """:returns: the response if there is no connection."""

    def ended(
        self, request_id: str, answer: AnswerRelay, duration: float, request_size: int, error: str, fault: str
    ) -> None:
        """
        An exchange ended.

        :param duration: in seconds.
        :param request_size: size of the request's body in bytes.
        :param error: why the response is incomplete; empty if it is complete.
        :param fault: the error if the host caused it.
        """


class ActiveRequest(typing.Protocol):
    """A request that was allowed and is not answered completely yet."""

    active: bool
    """Set by any progress; the check for silence clears it."""

    @property
    def began(self) -> float:
        """Start time in seconds of the clock."""

    def send(self, payload: bytes, last: bool, release: Callable[[], None] | None = None) -> None:
        """
        Take a part of the request's body.

        :param last: whether this is its end.
        :param release: called once the payload is not needed any more.
        """

    def choke(self, choked: bool) -> None:
        """The agent stopped or resumed reading."""

    def silent(self) -> None:
        """The host exceeded the time limit."""

    def fail(self, refusal: RequestRefusal) -> None:
        """Abort: the rest of the request cannot be received."""

    def cancel(self) -> None:
        """The agent disconnected."""


class _State(Enum):
    """State of the connection to the provider."""

    NEW = auto()
    RENEWING = auto()
    """The account's token is being renewed."""
    WAITING = auto()
    """A connection was requested."""
    CONNECTED = auto()
    OVER = auto()
    """The response is complete, or never will be."""


class Exchange:
    """
    Get a connection, send the request, forward the response.

    A token that is about to expire is renewed first. If the provider refuses a token that can be renewed, the request
    is sent a second time with another one, provided that its complete body was sent in one piece, which is kept until
    the response begins.

    :param answer: returns what forwards one response.
    :param tokens: of the account that pays; ``None`` for a host that belongs to no provider.
    """

    log = Logger()

    def __init__(
        self,
        client: ExchangeClient,
        outgoing: Outgoing,
        answer: Callable[[], AnswerRelay],
        pool: UpstreamPool,
        observer: ExchangeObserver,
        tokens: AccountTokens | None = None,
    ) -> None:
        self._client, self._outgoing, self._new_answer, self._observer = client, outgoing, answer, observer
        self._answer, self._pool, self._host, self._tokens = answer(), pool, observer.host, tokens
        self._token: Token | None = None
        self._kept: bytes | None = None
        self._release: Callable[[], None] | None = None
        self._upstream: Upstream | None = None
        self._unsent: list[bytes] = []
        self._state, self._sent_all = _State.NEW, False
        self._began, self._size = observer.now(), 0
        self.active = True
        """Set by any traffic with the provider; the check for silence clears it."""

    @property
    def began(self) -> float:
        """Start time in seconds of the clock."""
        return self._began

    def send(self, payload: bytes, last: bool, release: Callable[[], None] | None = None) -> None:
        """
        Forward a part of the request's body.

        :param last: whether this is its end.
        :param release: called once the payload is not needed any more.
        """
        self.active, self._release = True, release
        self._size += len(payload)
        if self._outgoing.chunked:
            payload = (b"%x\r\n%b\r\n" % (len(payload), payload) if payload else b"") + (b"0\r\n\r\n" if last else b"")
        if payload:
            self._unsent.append(payload)
        self._sent_all = last
        if self._upstream is not None:
            self._flush(self._upstream)
        elif self._state is _State.NEW:
            if not last:
                self._client.pause(True)
            if last and self._tokens is not None and self._tokens.renewable:
                self._kept = payload
            else:
                self._let_go()
            self._prepare()

    def connected(self, upstream: Upstream) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.Waiter`."""
        self._state, self._upstream, upstream.user = _State.CONNECTED, upstream, self
        if self._client.choked:
            upstream.pause(True)
        self._flush(upstream)
        if not self._sent_all:
            self._client.pause(False)

    def unreachable(self, reason: Failure) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.Waiter`."""
        refusal = self._observer.unreachable(reason.value)
        self._failed(refusal.status, refusal.code, refusal.reason)

    def upstream_data(self, data: bytes) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.UpstreamUser`."""
        self.active = True
        try:
            out = self._answer.feed(data)
        except ProtocolViolation as e:
            why = f"the answer of {self._host} could not be understood: {e.detail}"
            self._failed(502, "provider-unreadable", why)
            return
        if self._kept is not None and self._answer.status == HTTPStatus.UNAUTHORIZED and self._token is not None:
            self._again(self._kept, self._token)
            return
        if self._answer.status:
            self._let_go()
        if out:
            self._client.write(out)
        if self._answer.done:
            self._finish()

    def upstream_full(self, full: bool) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.UpstreamUser`."""
        self.active = True
        self._client.pause(full)

    def upstream_lost(self, reason: Failure) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.UpstreamUser`."""
        self._upstream = None
        rest = self._answer.ended(reason.check(ConnectionDone) is not None)
        if rest is None:
            self._failed(502, "provider-lost", explain(reason.value, self._host))
        else:
            self._client.write(rest)
            self._finish()

    def choke(self, choked: bool) -> None:
        """The agent stopped or resumed reading."""
        if self._upstream is not None:
            self._upstream.pause(choked)

    def silent(self) -> None:
        """The provider exceeded the time limit."""
        self._failed(504, "provider-silent", f"{self._host} did not answer in time")

    def fail(self, refusal: RequestRefusal) -> None:
        """Abort: the rest of the request cannot be received."""
        self._failed(refusal.status, refusal.code, refusal.reason)

    def cancel(self) -> None:
        """The agent disconnected. Closing the provider's connection makes it stop working."""
        if self._state is not _State.OVER:
            self._end("the agent closed its connection")

    def _prepare(self) -> None:
        tokens = self._tokens
        try:
            stale = tokens.current() if tokens is not None and tokens.due() else None
        except IronCurtainError as e:
            self._without_token(str(e))
            return
        if stale is None:
            self._take()
        else:
            self._renew(stale, early=True)

    def _take(self) -> None:
        try:
            self._token = self._tokens.current() if self._tokens is not None else None
        except IronCurtainError as e:
            self._without_token(str(e))
            return
        self._unsent.insert(0, self._outgoing.head(self._token))
        self._state = _State.WAITING
        self._pool.take(self)

    def _renew(self, stale: Token, *, early: bool) -> None:
        assert self._tokens is not None
        self._state = _State.RENEWING
        renewing = Deferred.fromCoroutine(self._tokens.renewed(stale))
        renewing.addCallbacks(
            lambda _: self._renewed(), self._not_renewed, errbackArgs=(stale,), errbackKeywords={"early": early}
        )

    def _renewed(self) -> None:
        if self._state is _State.RENEWING:
            self.active = True
            self._take()

    def _not_renewed(self, failure: Failure, stale: Token, *, early: bool) -> None:
        why = str(failure.value)
        if failure.check(IronCurtainError) is None:
            self.log.failure("the token for {host} cannot be renewed", failure, host=self._host)
            why = f"the token for {self._host} cannot be renewed"
        if self._state is not _State.RENEWING:
            return
        if early and self._tokens is not None and not self._tokens.expired(stale):
            self._take()
        else:
            self._without_token(why)

    def _without_token(self, why: str) -> None:
        self._failed(403, "no-valid-token", why, told=True)  # not 401, which agents retry for minutes

    def _again(self, body: bytes, stale: Token) -> None:
        """Send the request a second time: the provider does not accept the token."""
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.user = None
            upstream.abort()
        self._answer, self._unsent, self._kept = self._new_answer(), [body] if body else [], None
        self._renew(stale, early=False)

    def _let_go(self) -> None:
        self._kept = None
        release, self._release = self._release, None
        if release is not None:
            release()

    def _flush(self, upstream: Upstream) -> None:
        unsent, self._unsent = self._unsent, []
        upstream.write(b"".join(unsent))

    def _finish(self) -> None:
        self._end("")
        self._client.over()

    def _failed(self, status: int, code: str, why: str, *, told: bool = False) -> None:
        """:param told: whether people are told although neither the provider nor the way to it is the cause."""
        if self._state is _State.OVER:
            return
        begun = self._answer.status != 0
        self._end(why, why if told or status >= HTTPStatus.BAD_GATEWAY else "")
        if begun:
            self._client.broken()
        else:
            self._client.refuse(RequestRefusal(status, code, why))

    def _end(self, error: str, fault: str = "") -> None:
        """:param fault: the error if people are told of it."""
        self._state = _State.OVER
        self._let_go()
        answer, upstream, self._upstream = self._answer, self._upstream, None
        self._pool.forget(self)
        duration = self._observer.now() - self._began
        self._observer.ended(self._outgoing.request_id, answer, duration, self._size, error, fault)
        if upstream is None:
            return
        upstream.user = None
        if not error and self._sent_all and answer.reusable:
            if self._client.choked:
                upstream.pause(False)
            self._pool.give_back(upstream)
        else:
            upstream.abort()
