"""
The agent's requests inside a tunnel to one host, each judged separately.

Bytes come from TLS and go to TLS; they come from the connection itself if the agent uses plain HTTP. Each request has
an :class:`~ironcurtain.mitm_proxy.exchange.Exchange` for the host's side. Nothing of a request is forwarded before it
has been judged and recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.framing import Counted, Framing
from ironcurtain.http.head import HeadReader, HttpRequest
from ironcurtain.mitm_proxy.admission import WITHOUT_BODY
from ironcurtain.mitm_proxy.exchange import ActiveRequest
from ironcurtain.mitm_proxy.interfaces import Admission, Judged, WithBody
from ironcurtain.mitm_proxy.judgement import ForwardedRequest
from ironcurtain.mitm_proxy.limits import BufferedBody
from ironcurtain.mitm_proxy.shared import Shared
from ironcurtain.platform.sockets import is_left
from ironcurtain.providers import bodies
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.services.stream import FlowSignal

DRAIN_LIMIT = 1024 * 1024
"""
Maximum size in bytes of a refused request's body that is discarded; a longer one ends the connection (agents'
telemetry, which is refused, has requests of up to 830 kB).
"""

AHEAD_LIMIT = 64 * 1024
"""Maximum bytes of later requests that are buffered while this one is in progress."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class _State(Enum):
    HANDSHAKE = auto()
    HEAD = auto()
    JUDGING = auto()
    """A person may be asked; later bytes wait."""
    BODY = auto()
    ANSWER = auto()
    REFUSED = auto()
    """The rest of a refused request's body is discarded."""
    CLOSING = auto()


# Looking up an enum member is slow in Python 3.11.
_HANDSHAKE, _HEAD, _JUDGING, _BODY, _ANSWER, _REFUSED, _CLOSING = _State
_READING = _HEAD, _BODY, _REFUSED


UNDECIDED: Final = RequestRefusal(403, "not-decided", "the request could not be judged: try it again later")
"""The response to a request if its judgement fails."""


@implementer(IHandshakeListener)
class Tunnel(Protocol):
    """
    :param admit: returns what decides on its requests; called with the transport after the TLS handshake.
    :param host: the host that the agent asked for, for messages.
    """

    log = Logger()
    transport: Any

    def __init__(self, shared: Shared, admit: Callable[[Any], Admission], host: str) -> None:
        self._shared, self._admit, self._host, self._limits = shared, admit, host, shared.limits
        self._admission: Admission
        self._judging: Deferred[Judged] | Deferred[Judged | WithBody] | None = None
        self._state, self._busy, self._paused = _HANDSHAKE, False, False
        self._reader, self._ahead = HeadReader(), b""
        self._request: HttpRequest | None = None
        self._framing: Framing = Counted(0)
        self._body: BufferedBody | None = None
        self._forward: ForwardedRequest | WithBody | None = None
        self._exchange: ActiveRequest | None = None
        self._within(self._limits.head_seconds)
        self.choked = False

    def handshakeCompleted(self) -> None:
        self._admission = self._admit(self.transport)
        self.transport.registerProducer(FlowSignal(self._choke), True)
        self._wait_for_head()

    def dataReceived(self, data: bytes) -> None:
        if self._state is _CLOSING:
            return
        self._ahead = self._ahead + data if self._ahead else data
        self._go_on()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._state is _HANDSHAKE:
            self.log.info("an agent ended the TLS handshake for {host}: {why}", host=self._host, why=reason.value)
        else:
            self._admission.close()
        self._state = _CLOSING
        self._drop_body()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.cancel()
        if self._judging is not None:
            self._judging.cancel()
        self._shared.connections.remove(self)

    def check(self, now: float) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.ProxyConnection`."""
        if self._state is not _HANDSHAKE:
            self._admission.check(now)
        if self._judging is not None and self._paused and is_left(self.transport.transport.fileno()):
            self.abort()  # nothing is read, so that nobody else says that the agent left
            return
        exchange = self._exchange
        if exchange is not None and exchange.active:
            exchange.active = False
            self._until = min(now + self._limits.silence_seconds, exchange.began + self._limits.answer_seconds)
        if now >= self._until:
            self._too_late()

    def abort(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.ProxyConnection`."""
        if self.transport.connected:
            self.transport.transport.abortConnection()  # no close_notify: the message is truncated

    # Called by the exchange.

    def write(self, data: bytes) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeClient`."""
        self.transport.write(data)

    def pause(self, paused: bool) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeClient`."""
        if paused != self._paused:
            self._paused = paused
            if paused:
                self.transport.pauseProducing()
            else:
                self.transport.resumeProducing()

    def over(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeClient`."""
        self._exchange = None
        if self._request is None or self._request.last or not self._framing.done:
            self._close()
        else:
            self._wait_for_head()
            self._go_on()

    def refuse(self, refusal: RequestRefusal) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeClient`."""
        self._exchange = None
        self._answer(refusal)
        self._go_on()

    def broken(self) -> None:
        """
        See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeClient`. The framing shows that the response is truncated.
        """
        self._exchange = None
        self._close()

    # Requests.

    def _go_on(self) -> None:
        if self._busy:
            return
        self._busy = True
        try:
            while self._ahead and self._state in _READING and not self._stuck:
                data, self._ahead = self._ahead, b""
                self._ahead = self._take(data)
        except ProtocolViolation as e:
            self._unfinished(RequestRefusal(400, "malformed", f"the request is invalid: {e.detail}"))
        finally:
            self._busy = False
        if len(self._ahead) > AHEAD_LIMIT:
            self.pause(True)

    def _take(self, data: bytes) -> bytes:
        """:returns: the bytes of the next request."""
        if self._state is _HEAD:
            return self._take_head(data)
        payload, used = self._framing.feed(data)
        if self._state is _BODY:
            self._take_body(payload)
        elif self._framing.done:
            self._wait_for_head()
        return data[used:]

    def _take_head(self, data: bytes) -> bytes:
        if not self._reader.begun:
            self._within(self._limits.head_seconds)
        if (found := self._reader.feed(data)) is None:
            return b""
        head, rest = found
        self._request = None
        self._request, judged = self._admission.take(head)
        request = self._request
        self._framing = request.framing()
        if isinstance(judged, Deferred):
            self._state, self._judging = _JUDGING, judged
            self._within(self._limits.answer_seconds)
            judged.addErrback(self._undecided).addCallback(self._decided)
        else:
            self._proceed(request, judged)
        return rest

    def _proceed(self, request: HttpRequest, judged: Judged | WithBody) -> None:
        self._within(self._limits.body_seconds)
        if isinstance(judged, RequestRefusal):
            self._deny(judged)
        else:
            self._begin(request, judged)

    def _decided(self, judged: Judged | WithBody) -> None:
        self._judging = None
        if self._state is _JUDGING:
            assert self._request is not None
            if self._body is None:
                self._proceed(self._request, judged)
            else:
                self._inspected(self._body, judged)
            self._go_on()

    def _undecided(self, failure: Failure) -> RequestRefusal:
        if failure.check(CancelledError) is None:
            self.log.failure("a request to {host} could not be judged", failure, host=self._host)
        return UNDECIDED

    def _begin(self, request: HttpRequest, forward: ForwardedRequest | WithBody) -> None:
        self._state = _BODY
        limit: int | None = None
        if isinstance(forward, WithBody):
            limit = forward.limit
        elif forward.bodies is not None and not (request.length == 0 and request.head.method in WITHOUT_BODY):
            limit = bodies.BODY_LIMIT  # some clients send a Content-Type without content, too
        elif not self._start(forward, request.length):
            return
        if limit is not None and request.length is not None and request.length > limit:
            self._deny(bodies.too_large(limit))
            return
        if limit is not None:
            self._body, self._forward = BufferedBody(self._shared.buffered, limit), forward
        if request.expects:
            self.transport.write(CONTINUE)
        if self._framing.done or limit is None:
            self._take_body(b"")

    def _take_body(self, payload: bytes) -> None:
        done = self._framing.done
        if done:
            self._state = _ANSWER
        if self._body is not None:
            refusal = self._body.add(payload)
            if refusal is not None:
                self._deny(refusal)
            elif done:
                self._inspect(self._body)
        elif self._exchange is not None:
            self._exchange.active = True
            self._exchange.send(payload, done)

    def _inspect(self, buffered: BufferedBody) -> None:
        forward, body = self._forward, buffered.whole()
        if isinstance(forward, WithBody):
            self._state, self._judging = _JUDGING, forward.judge(body)
            self._within(self._limits.answer_seconds)
            self._judging.addErrback(self._undecided).addCallback(self._decided)
            return
        assert forward is not None and forward.bodies is not None
        judged = bodies.judge_body(forward.bodies, body)
        if isinstance(judged, RequestRefusal):
            self._deny(judged)
        else:
            self._send_whole(forward, judged, buffered)

    def _inspected(self, buffered: BufferedBody, judged: Judged | WithBody) -> None:
        self._state = _ANSWER
        if isinstance(judged, RequestRefusal):
            self._deny(judged)
        elif isinstance(judged, ForwardedRequest):
            self._send_whole(judged, bodies.JudgedBody(buffered.whole(), ()), buffered)

    def _send_whole(self, forward: ForwardedRequest, body: bodies.JudgedBody, buffered: BufferedBody) -> None:
        if self._start(forward, len(body.data), body.dropped) and self._exchange is not None:
            self._body = None
            self._exchange.send(body.data, True, buffered.hand_over())

    def _start(self, forward: ForwardedRequest, length: int | None, fields: tuple[str, ...] = ()) -> bool:
        """:param fields: names of fields of the body that are not sent."""
        assert self._request is not None
        started = self._admission.start(self, self._request, forward, length, fields)
        if isinstance(started, RequestRefusal):
            self._answer(started)
            return False
        self._exchange = started
        return True

    # Responses of the proxy, and ends.

    def _deny(self, refusal: RequestRefusal) -> None:
        self._answer(self._admission.denied(self._request, refusal))

    def _unfinished(self, refusal: RequestRefusal) -> None:
        """The rest of this request cannot be separated from the next one: answer, and close."""
        self._request = None
        if self._exchange is not None:
            self._exchange.fail(refusal)
        else:
            self._deny(refusal)

    def _answer(self, refusal: RequestRefusal) -> None:
        self._drop_body()
        request, rest = self._request, self._framing
        drained = rest.done or (isinstance(rest, Counted) and rest.left <= DRAIN_LIMIT)
        close = request is None or request.last or not drained or (request.expects and not rest.done)
        answer = self._admission.response(refusal, request, close)
        if request is not None and request.head.method == "HEAD":
            answer = answer[: answer.index(b"\r\n\r\n") + 4]
        self.transport.write(answer)
        if close:
            self._close()
        elif rest.done:
            self._wait_for_head()
        else:
            self.pause(False)
            self._state = _REFUSED

    def _wait_for_head(self) -> None:
        self.pause(False)
        self._state = _HEAD
        self._within(self._limits.idle_seconds)

    def _close(self) -> None:
        self.pause(False)
        self._state, self._ahead = _CLOSING, b""
        self._within(self._limits.linger_seconds)
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _too_late(self) -> None:
        if self._state is _ANSWER and self._exchange is not None:
            self._exchange.silent()
        elif self._judging is not None:
            self._judging.cancel()
        elif self._state is _BODY or (self._state is _HEAD and self._reader.begun):
            self._unfinished(RequestRefusal(408, "too-slow", "the request did not arrive in time"))
        elif self._state is _HEAD:
            self._close()
        else:
            self.abort()

    def _drop_body(self) -> None:
        if self._body is not None:
            self._body.release()
            self._body = None

    def _within(self, seconds: float) -> None:
        self._until = self._shared.recorder.now() + seconds

    @property
    def _stuck(self) -> bool:
        """Whether the agent has to read its responses before the next request is processed."""
        return self.choked and self._exchange is None

    def _choke(self, choked: bool) -> None:
        self.choked = choked
        if self._exchange is not None:
            self._exchange.choke(choked)
        elif choked:
            self.pause(True)
        else:
            self.pause(False)
            self._go_on()
