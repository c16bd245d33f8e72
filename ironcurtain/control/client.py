"""The control API's client: the same methods as the operations themselves."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import Any

import msgspec
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.error import ConnectError, ConnectingCancelledError, ConnectionClosed, ConnectionLost
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, RequestTransmissionFailed, ResponseDone, ResponseFailed
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from ironcurtain.control import wire
from ironcurtain.control.calls import ANSWER_LIMIT, ControlCalls, session_path
from ironcurtain.control.host_numbers import seconds_ahead
from ironcurtain.control.starting import StartReader
from ironcurtain.errors import ProtocolViolation, Unavailable
from ironcurtain.http.connections import QuietConnectionPool
from ironcurtain.http.sse import EventParser
from ironcurtain.operations import Principal
from ironcurtain.operations.api import OnEvent
from ironcurtain.operations.model import Name
from ironcurtain.session.events import Missed, Stamped, StateChanged
from ironcurtain.session.model import OWNER_GONE, SessionInfo, SessionRequest


@implementer(IAgentEndpointFactory)
class SocketEndpoints:
    """For an HTTP client: every request goes to this UNIX socket."""

    def __init__(self, reactor: Any, path: str) -> None:
        self._reactor, self._path = reactor, path

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        return UNIXClientEndpoint(self._reactor, self._path)


class ControlClient(ControlCalls):
    """The operations of another process, and the events of its sessions, under the reactor."""

    def __init__(self, reactor: Any, path: str, who: Principal | None = None, host: str = "") -> None:
        super().__init__(path, who, host)
        connections = QuietConnectionPool(reactor, persistent=False)
        self._http = HTTPClient(Agent.usingEndpointFactory(reactor, SocketEndpoints(reactor, path), pool=connections))

    async def start(
        self, request: SessionRequest, on_event: OnEvent = lambda stamped: None, attended: bool = True
    ) -> SessionInfo:
        """
        Start a session there. Cancelling ends it.

        :param on_event: called with its events until it is ready.
        :param attended: whether its escalations wait for a person; else they are denied at once.
        """
        response = await self._request("POST", "/v1/sessions?follow=1", wire.start_body(request, attended))
        if response.code != 200:
            raise self._refusal(await _whole(response, ANSWER_LIMIT))
        reader = _Starting(lambda stamped: on_event(self._from_host(stamped)))
        response.deliverBody(reader)
        try:
            return self._from_host(await reader.outcome)
        except ConnectionClosed as e:
            raise self._lost(e) from None

    async def hold(self, name: Name) -> Callable[[], None]:
        """
        Tie a session to this process: the session ends with this process, unless it is released before.

        :returns: a function that ends the hold.
        """
        return await self._stream(f"{session_path(name)}/events?hold=1", lambda event: None)

    async def follow(self, name: Name, after: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events. If the process dies, the last one says that the session is closed.

        :returns: a function that ends the delivery.
        """
        return await self._stream(f"{session_path(name)}/events?after={after}", on_event)

    async def _stream(self, path: str, on_event: OnEvent) -> Callable[[], None]:
        response = await self._request("GET", path, None)
        if response.code != 200:
            raise self._refusal(await _whole(response, ANSWER_LIMIT))
        reader = _Events(lambda stamped: on_event(self._from_host(stamped)))
        response.deliverBody(reader)
        return reader.stop

    async def _content(self, method: str, path: str, body: msgspec.Struct | None, limit: int | None = None) -> bytes:
        response = await self._request(method, path, body)
        try:
            content = await _whole(response, limit or ANSWER_LIMIT)
        except (ConnectionClosed, ResponseFailed) as e:
            raise self._lost(e) from None
        if response.code != 200:
            raise self._refusal(content)
        return content

    async def _request(self, method: str, path: str, body: msgspec.Struct | None) -> Any:
        data = None if body is None else msgspec.json.encode(body)
        headers = Headers({name: [value] for name, value in self._headers_of(method, path).items()})
        try:
            response = await self._http.request(method, f"http://ironcurtain{path}", data=data, headers=headers)
        except ConnectingCancelledError:
            raise CancelledError from None
        except (ConnectError, ConnectionClosed, ResponseFailed, RequestTransmissionFailed) as e:
            if any(reason.check(CancelledError) for reason in getattr(e, "reasons", ())):
                raise CancelledError from None
            raise self._lost(e) from None
        if self.host:
            self._ahead = seconds_ahead((response.headers.getRawHeaders(b"date") or [b""])[0], time.time())
        return response

    def _lost(self, error: Exception) -> Unavailable:
        reasons: list[Failure] = getattr(error, "reasons", [])  # exceptions that only wrap others
        if getattr(error, "osError", None) in (errno.ECONNREFUSED, errno.ENOENT):
            return self._ended()
        return self._unavailable(reasons[0].getErrorMessage() if reasons else str(error))


async def _whole(response: Any, limit: int) -> bytes:
    """
    :returns: the body of a response.
    :raises Unavailable: it is longer than the limit.
    """
    reader = _Whole(limit)
    response.deliverBody(reader)
    return await reader.whole


class _Whole(Protocol):
    def __init__(self, limit: int) -> None:
        self._limit, self._got = limit, bytearray()
        self.whole: Deferred[bytes] = Deferred(lambda _: self._leave())

    def dataReceived(self, data: bytes) -> None:
        if self.whole.called:
            return
        self._got += data
        if len(self._got) > self._limit:
            self._leave()
            self.whole.errback(Unavailable(f"an answer is over {self._limit} bytes"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.whole.called:
            return
        if reason.check(ResponseDone, PotentialDataLoss):
            self.whole.callback(bytes(self._got))
        else:
            self.whole.errback(reason)

    def _leave(self) -> None:
        self._got.clear()
        if self.transport is not None:
            self.transport.loseConnection()


class _Starting(Protocol):
    """
    The events of a session that is starting.

    :ivar outcome: fires once it has started or failed; cancelling it ends the session.
    """

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event, self._reader = on_event, StartReader()
        self.outcome: Deferred[SessionInfo] = Deferred(lambda _: self._leave())

    def dataReceived(self, data: bytes) -> None:
        try:
            for heard in self._reader.feed(data):
                if isinstance(heard, SessionInfo):
                    self.outcome.callback(heard)
                else:
                    self._on_event(heard)
        except wire.RemoteError as e:
            self.outcome.errback(e)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if not self.outcome.called:
            self.outcome.errback(ConnectionLost("it ended without an answer"))

    def _leave(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()


class _Events(Protocol):
    log = Logger()

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event: OnEvent | None = on_event
        self._parser = EventParser()
        self._last = Stamped(0, 0.0, Missed(count=0))
        self._closed = False

    def dataReceived(self, data: bytes) -> None:
        try:
            self._read(data)
        # Of another host, which may lie.
        except (msgspec.DecodeError, UnicodeDecodeError, ProtocolViolation, RecursionError) as e:
            self.log.warn("the events of a session cannot be read: {error}", error=e)
            if self.transport is not None:
                self.transport.loseConnection()

    def _read(self, data: bytes) -> None:
        for event in self._parser.feed(data):
            self._last = msgspec.json.decode(event.data, type=Stamped)
            self._closed |= isinstance(self._last.event, StateChanged) and self._last.event.state == "closed"
            self._tell(self._last)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if not self._closed:
            gone = StateChanged(state="closed", reason=OWNER_GONE)
            self._tell(Stamped(self._last.sequence + 1, self._last.time, gone))

    def stop(self) -> None:
        """End the delivery."""
        self._on_event = None
        if self.transport is not None:
            self.transport.loseConnection()

    def _tell(self, stamped: Stamped) -> None:
        if self._on_event is not None:
            self._on_event(stamped)
