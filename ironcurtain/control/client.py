"""The control API's client: the same methods as the operations themselves."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

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
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from ironcurtain.control import wire
from ironcurtain.control.host_numbers import of_host, on_host, seconds_ahead
from ironcurtain.errors import ProtocolViolation, Unavailable
from ironcurtain.escalation import Outcome
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.http.connections import QuietConnectionPool
from ironcurtain.http.sse import EventParser
from ironcurtain.operations import Principal
from ironcurtain.operations.api import OnEvent
from ironcurtain.operations.model import EscalationView, Name, PermissionView, Reloaded
from ironcurtain.operations.principal import owner
from ironcurtain.session.events import Missed, Stamped, StateChanged
from ironcurtain.session.model import OWNER_GONE, Reply, SessionInfo, SessionRequest, Ticket, Turn, Usage
from ironcurtain.terminal.model import Mode

if TYPE_CHECKING:
    from ironcurtain.session.snapshots import UndoReport

ANSWER_LIMIT = 64 * 1024 * 1024
"""Maximum number of bytes of an answer (the longest is the history of a session): a process can be of another host."""

T = TypeVar("T")


class _Reply(msgspec.Struct):
    text: str
    usage: Usage


@implementer(IAgentEndpointFactory)
class SocketEndpoints:
    """For an HTTP client: every request goes to this UNIX socket."""

    def __init__(self, reactor: Any, path: str) -> None:
        self._reactor, self._path = reactor, path

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        return UNIXClientEndpoint(self._reactor, self._path)


class ControlClient:
    """
    The operations of another process.

    Every method raises :class:`~ironcurtain.errors.Unavailable` if the process is gone, and
    :class:`~ironcurtain.control.wire.RemoteError` if it refuses.

    :param path: path of its control socket.
    :param who: the principal, if not the local user.
    :ivar host: the name of its host; empty: this one.
    """

    def __init__(self, reactor: Any, path: str, who: Principal | None = None, host: str = "") -> None:
        self._path, self.host = path, host
        self._ahead = 0.0
        who = who or (owner() if host else None)
        self._headers = {} if who is None else wire.principal_headers(who)
        connections = QuietConnectionPool(reactor, persistent=False)
        self._http = HTTPClient(Agent.usingEndpointFactory(reactor, SocketEndpoints(reactor, path), pool=connections))

    async def sessions(self) -> list[SessionInfo]:
        """:returns: all sessions of that process."""
        return await self._call("GET", "/v1/sessions", list[SessionInfo])

    async def start(
        self, request: SessionRequest, on_event: OnEvent = lambda stamped: None, attended: bool = True
    ) -> SessionInfo:
        """
        Start a session there. Cancelling ends it.

        :param on_event: called with its events until it is ready.
        :param attended: whether its escalations wait for a person; else they are denied at once.
        """
        workspace = str(request.workspace) if request.workspace is not None else ""
        options = dict(request.options)
        body = wire.StartBody(
            *(request.kind, request.task, workspace, options, request.resume, request.terminal, request.typed),
            *(request.budget, attended),
        )
        response = await self._request("POST", "/v1/sessions?follow=1", body)
        if response.code != 200:
            raise wire.read_error(await _whole(response, ANSWER_LIMIT))
        reader = _Starting(lambda stamped: on_event(self._from_host(stamped)))
        response.deliverBody(reader)
        try:
            return self._from_host(await reader.outcome)
        except ConnectionClosed as e:
            raise self._unavailable(e) from None

    async def send(self, name: Name, message: str, typed: str = "") -> Reply:
        """See :meth:`ironcurtain.operations.api.SessionApi.send`."""
        reply = await self._call("POST", f"{_session(name)}/messages", _Reply, wire.MessageBody(message, typed))
        return Reply(reply.text, reply.usage)

    async def cancel(self, name: Name) -> bool:
        """:returns: whether there was a message to cancel."""
        answer = await self._call("POST", f"{_session(name)}/cancel", dict[str, bool])
        return answer["cancelled"]

    async def withdraw(self, name: Name, number: int = 0) -> str:
        """See :meth:`ironcurtain.operations.api.SessionApi.withdraw`."""
        answer = await self._call("POST", f"{_session(name)}/withdraw", dict[str, str], wire.WithdrawBody(number))
        return answer["text"]

    async def undo(self, name: Name, snapshot: int, everything: bool = False) -> UndoReport:
        """See :meth:`ironcurtain.operations.api.SessionApi.undo`."""
        from ironcurtain.session.snapshots import UndoReport  # with what it imports, slow to import

        return await self._call("POST", f"{_session(name)}/undo", UndoReport, wire.UndoBody(snapshot, everything))

    async def session(self, name: Name) -> SessionInfo:
        """:returns: one session."""
        return await self._call("GET", _session(name), SessionInfo)

    async def ticket(self, name: Name, mode: Mode) -> Ticket:
        """:returns: a ticket for attaching to a session's terminal."""
        ticket = await self._call("POST", f"{_session(name)}/terminal", Ticket, wire.AttachBody(mode))
        return msgspec.structs.replace(ticket, socket=self._path) if self.host else ticket

    async def stop(self, name: Name, held: bool = False) -> SessionInfo:
        """
        End a session.

        :param held: only if it was not released since it was held.
        :returns: the session; it is not closed if it continues.
        """
        return await self._call("DELETE", f"{_session(name)}?held={int(held)}", SessionInfo)

    async def join(self, name: Name) -> SessionInfo:
        """Take part in a conversation, which releases it."""
        return await self._call("POST", f"{_session(name)}/join", SessionInfo)

    async def release(self, name: Name) -> SessionInfo:
        """Let a session continue without the client that holds it."""
        return await self._call("POST", f"{_session(name)}/release", SessionInfo)

    async def history(self, name: Name) -> list[Turn]:
        """:returns: the turns so far."""
        return await self._call("GET", f"{_session(name)}/history", list[Turn])

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """:returns: the pending escalations; with ``closed`` also those closed after that number."""
        return await self._call("GET", f"/v1/escalations?closed={int(closed)}&after={after}", list[EscalationView])

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """Report that an escalation was shown completely, so that it may be approved by its number."""
        body = wire.ShownBody(digest, calls)
        await self._call("POST", f"/v1/escalations/{on_host(number)}/shown", dict[str, str], body)

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """Answer an escalation; with ``keep``, an approval covers all calls of its scope."""
        body = wire.DecisionBody(outcome.value, digest, keep, calls)
        return await self._call("POST", f"/v1/escalations/{on_host(number)}", EscalationView, body)

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        """Answer a form; without content it is cancelled."""
        body = wire.AnswerBody(None if content is None else dict(content), digest)
        return await self._call("POST", f"/v1/escalations/{on_host(number)}/answer", EscalationView, body)

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """Deny all pending escalations, or those of one session; returns their numbers."""
        body = wire.DenyAllBody("" if name is None else str(on_host(name)))
        denied = (await self._call("POST", "/v1/escalations/deny-all", dict[str, list[int]], body))["denied"]
        return [HostNumber(self.host, number) for number in denied] if self.host else denied

    async def permissions(self) -> list[PermissionView]:
        """:returns: the kept approvals in force."""
        return await self._call("GET", "/v1/permissions", list[PermissionView])

    async def revoke(self, number: int) -> PermissionView:
        """Revoke a kept approval."""
        return await self._call("DELETE", f"/v1/permissions/{on_host(number)}", PermissionView)

    async def reload(self) -> Reloaded:
        """Make that process read its configuration files again."""
        return await self._call("POST", "/v1/reload", Reloaded)

    async def read(self, path: str, type_: type[T]) -> T:
        """:returns: what that process answers at another path of the API."""
        return await self._call("GET", path, type_)

    async def ask(self, path: str, type_: type[T], body: msgspec.Struct | None = None) -> T:
        """:returns: what that process answers to a request at another path of the API, which changes something."""
        return await self._call("POST", path, type_, body)

    async def hold(self, name: Name) -> Callable[[], None]:
        """
        Tie a session to this process: the session ends with this process, unless it is released before.

        :returns: a function that ends the hold.
        """
        return await self._stream(f"{_session(name)}/events?hold=1", lambda event: None)

    async def follow(self, name: Name, after: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events. If the process dies, the last one says that the session is closed.

        :returns: a function that ends the delivery.
        """
        return await self._stream(f"{_session(name)}/events?after={after}", on_event)

    async def _stream(self, path: str, on_event: OnEvent) -> Callable[[], None]:
        response = await self._request("GET", path, None)
        if response.code != 200:
            raise wire.read_error(await _whole(response, ANSWER_LIMIT))
        reader = _Events(lambda stamped: on_event(self._from_host(stamped)))
        response.deliverBody(reader)
        return reader.stop

    async def content(self, path: str, limit: int) -> bytes:
        """
        :param limit: maximum number of bytes.
        :returns: what that process answers at another path of the API, as it is.
        """
        return await self._content("GET", path, None, limit)

    async def _call(self, method: str, path: str, type_: type[T], body: msgspec.Struct | None = None) -> T:
        content = await self._content(method, path, body)
        try:
            return self._from_host(msgspec.json.decode(content, type=type_))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise wire.read_error(b"") from None

    async def _content(self, method: str, path: str, body: msgspec.Struct | None, limit: int | None = None) -> bytes:
        response = await self._request(method, path, body)
        try:
            content = await _whole(response, limit or ANSWER_LIMIT)
        except (ConnectionClosed, ResponseFailed) as e:
            raise self._unavailable(e) from None
        if response.code != 200:
            raise wire.read_error(content)
        return content

    async def _request(self, method: str, path: str, body: msgspec.Struct | None) -> Any:
        data = None if body is None else msgspec.json.encode(body)
        try:
            response = await self._http.request(method, f"http://ironcurtain{path}", data=data, headers=self._headers)
        except ConnectingCancelledError:
            raise CancelledError from None
        except (ConnectError, ConnectionClosed, ResponseFailed, RequestTransmissionFailed) as e:
            if any(reason.check(CancelledError) for reason in getattr(e, "reasons", ())):
                raise CancelledError from None
            raise self._unavailable(e) from None
        if self.host:
            self._ahead = seconds_ahead((response.headers.getRawHeaders(b"date") or [b""])[0], time.time())
        return response

    def _from_host(self, value: T) -> T:
        return of_host(self.host, value, self._ahead) if self.host else value

    def _unavailable(self, error: Exception) -> Unavailable:
        reasons: list[Failure] = getattr(error, "reasons", [])  # exceptions that only wrap others
        if getattr(error, "osError", None) == errno.ECONNREFUSED:
            why = "it was killed, or is ending"
        else:
            why = reasons[0].getErrorMessage() if reasons else str(error)
        return Unavailable(f"the process behind {self._path} does not answer: {why}")


def _session(name: Name) -> str:
    return f"/v1/sessions/{quote(str(on_host(name)), safe='')}"


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
        self._on_event, self._parser = on_event, EventParser()
        self.outcome: Deferred[SessionInfo] = Deferred(lambda _: self._leave())

    def dataReceived(self, data: bytes) -> None:
        for event in self._parser.feed(data):
            if event.name == "started":
                self.outcome.callback(msgspec.json.decode(event.data, type=SessionInfo))
            elif event.name == "failed":
                self.outcome.errback(wire.read_error(event.data.encode()))
            else:
                self._on_event(msgspec.json.decode(event.data, type=Stamped))

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
        except (msgspec.DecodeError, ProtocolViolation) as e:  # of another host, which may lie
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
