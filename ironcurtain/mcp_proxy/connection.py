"""One agent's connection: passes bytes to the session's state machine, and requests to the router."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IHalfCloseableProtocol, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import INBOUND_LIMIT, Framer
from ironcurtain.mcp_proxy.backend import OnProgress, RpcError
from ironcurtain.mcp_proxy.envelope import ChangeFilter
from ironcurtain.mcp_proxy.router import Router
from ironcurtain.mcp_proxy.sending import MessageSender, MessageTransport
from ironcurtain.mcp_proxy.session import AgentSession, Answered, Cancel, Initialized, SendLine, Start

STEP = 1e-6
"""Increment of the progress value in reports of the proxy."""


class ProgressLine(msgspec.Struct):
    """
    Progress reports under one token.

    :param token: the agent's token.
    :param tell: called with the raw JSON parameters of each ``notifications/progress``.
    """

    token: codec.Id
    tell: Callable[[bytes], None]
    _said: float = 0.0
    _shift: float | None = None

    def waiting(self, message: str) -> None:
        """Report that the call still waits."""
        self._said += STEP
        self.tell(codec.encode({"progressToken": self.token, "progress": self._said, "message": message}))

    def relay(self, params: dict[str, Any]) -> None:
        """:param params: a report of the server, under the server's token."""
        value = params.get("progress")
        if self._shift is None:
            behind = self._said and isinstance(value, int | float) and value <= self._said
            self._shift = self._said + STEP - value if behind and isinstance(value, int | float) else 0.0
        shifted = {name: self._shifted(params[name]) for name in ("progress", "total") if name in params}
        self.tell(codec.encode({**params, **shifted, "progressToken": self.token}))

    def _shifted(self, value: Any) -> Any:
        return value + self._shift if self._shift and isinstance(value, int | float) else value


UNREAD_LIMIT = 32 * 1024 * 1024
"""
Maximum bytes queued for an agent that does not read while others do: 32 MiB. The only agent is never disconnected;
instead the servers wait.
"""

LAST_SECONDS = 5.0
"""Seconds that an agent that ended its input has for receiving outstanding answers."""

FLUSH_SECONDS = 2.0
"""Seconds to flush written data before a connection is aborted."""

ENDLESS = 4 * INBOUND_LIMIT
"""Maximum bytes of an overlong line that are read and discarded: 32 MiB."""

JUNK_LINES = 1000
"""Maximum number of consecutive invalid lines from an agent. Each is answered with an error."""

CHANGED = "list_changed"


class Peers(typing.Protocol):
    """The other connections of the session."""

    def add(self, connection: AgentConnection) -> None:
        """Register a new connection."""

    def remove(self, connection: AgentConnection) -> None:
        """Remove a connection that ended."""

    def changed(self) -> None:
        """A connection stopped or resumed reading."""

    def others_read(self, connection: AgentConnection) -> bool:
        """:returns: whether another agent reads its output."""


class _State(Enum):
    OPEN = auto()
    INPUT_ENDED = auto()
    """The agent ended its input, and still receives answers."""
    CLOSED = auto()
    """The agent receives nothing."""


@implementer(IHalfCloseableProtocol)
class AgentConnection(Protocol):
    """
    :param peers: notified when this connection stops or resumes reading.
    :param gone: returns whether the peer has disconnected completely, after it ended its input.
    """

    log = Logger()
    transport: MessageTransport
    _sender: MessageSender

    def __init__(
        self, router: Router, peers: Peers, clock: IReactorTime, gone: Callable[[AgentConnection], bool]
    ) -> None:
        self._router, self._peers, self._clock, self._gone = router, peers, clock, gone
        self._framer, self._session = Framer(INBOUND_LIMIT), AgentSession(router.methods)
        self._running: dict[int, Deferred[bytes]] = {}
        self._asked: dict[int, Deferred[bytes]] = {}
        self._waiting: set[int] = set()
        self._postponed: dict[str, bytes | None] = {}
        self._timer: IDelayedCall | None = None
        self._state = _State.OPEN
        self.ended: Deferred[None] = Deferred()
        """Fires when the connection has ended."""
        self.subscriptions: dict[str, tuple[str, str]] = {}
        """By the agent's URI, the server and the server's URI."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The agent's capabilities."""
        capabilities = self._session.client.get("capabilities")
        return capabilities if isinstance(capabilities, dict) else {}

    @property
    def version(self) -> str:
        """The negotiated protocol revision."""
        return self._session.version

    @property
    def choked(self) -> bool:
        """Whether the agent does not read its output."""
        return self._sender.waiting > 0

    @property
    def introduced(self) -> bool:
        """Whether the agent has begun to use the protocol."""
        return bool(self._session.version)

    def connectionMade(self) -> None:
        """The agent connected."""
        self._sender = MessageSender(self.transport, self._blocked, self._drained)
        self._peers.add(self)

    def dataReceived(self, data: bytes) -> None:
        """Process the complete lines in the data."""
        lines = self._framer.feed(data)
        if self._framer.discarded > ENDLESS:
            self._cut_off("sent a line without an end")
            return
        for line in lines:
            if self._state is _State.CLOSED:
                return
            command = self._session.receive(line)
            if self._session.junk > JUNK_LINES:
                self._cut_off("sent invalid MCP messages")
                return
            if isinstance(command, Start):
                self._start(command)
            elif isinstance(command, SendLine):
                self._write(command.line)
            elif isinstance(command, Cancel):
                self._cancel(command.key)
            elif isinstance(command, Answered):
                self._answered(command)
            elif isinstance(command, Initialized):
                postponed, self._postponed = self._postponed, {}
                for method, params in postponed.items():
                    self.tell(method, params)

    def readConnectionLost(self) -> None:
        """
        The agent ended its input. It may still read, so it receives outstanding answers, except those that wait for a
        person.
        """
        if self._gone(self):
            self._abort()
            return
        if self._state is _State.CLOSED:
            return
        self._state = _State.INPUT_ENDED
        self._timer = self._clock.callLater(LAST_SECONDS, self.close)
        for key in list(self._waiting):
            self._cancel(key)
        self._close_if_done()

    def writeConnectionLost(self) -> None:
        """The agent reads nothing more, so its requests are cancelled."""
        self._abort()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """The connection is lost: cancel all requests of the agent."""
        self._state = _State.CLOSED
        self._stop_timer()
        for key in list(self._running):
            self._cancel(key)
        asked, self._asked = self._asked, {}
        for question in asked.values():
            question.errback(Failure(_agent_gone()))
        self._peers.remove(self)
        self.ended.callback(None)

    def close(self) -> None:
        """Close the connection once its output is flushed, or after a short time."""
        if self._state is _State.CLOSED:
            return
        self._state = _State.CLOSED
        for key in list(self._running):
            self._cancel(key)
        self._stop_timer()
        self._timer = self._clock.callLater(FLUSH_SECONDS, self._abort)
        self._sender.finish()
        self.transport.loseConnection()

    def listens_to(self, uri: str) -> bool:
        """Whether an open ``subscriptions/listen`` request asked for a resource."""
        return self._session.listens_to(uri)

    def tell(self, method: str, params: bytes | None) -> None:
        """
        Send a notification. Changes of lists are held back until the handshake is complete. An agent without handshake
        gets those that it asked for.
        """
        if self._session.modern:
            for line in self._session.notices(method, params):
                self._write(line)
        elif self._session.initialized:
            self._write(codec.notification(method, params))
        elif method.endswith(CHANGED) and self._session.answered:
            self._postponed[method] = params

    def ask(self, method: str, params: bytes | None) -> Deferred[bytes]:
        """:returns: the raw JSON result; fails with :class:`RpcError`. Cancelling it sends the agent a cancellation."""
        question, line = self._session.ask(method, params)
        answer: Deferred[bytes] = Deferred(lambda _: self._withdraw(question))
        self._asked[question] = answer
        self._write(line)
        return answer

    def _withdraw(self, question: int) -> None:
        self._asked.pop(question, None)
        if (line := self._session.withdraw(question)) is not None:
            self._write(line)

    def _answered(self, answered: Answered) -> None:
        question = self._asked.pop(answered.question)
        if answered.error is not None:
            question.errback(Failure(RpcError(answered.error)))
        else:
            question.callback(answered.result or b"{}")

    def _start(self, start: Start) -> None:
        sink = _RequestProgress(self, start.key, self._session.progress_token(start.key))
        running = Deferred.fromCoroutine(self._router.handle(self, start.method, start.params, sink))
        if not running.called:
            self._running[start.key] = running
        running.addCallbacks(self._succeeded, self._failed, callbackArgs=(start.key,), errbackArgs=(start.key,))

    def _succeeded(self, result: bytes, key: int) -> None:
        self._finish(key, self._session.finish(key, result))

    def _failed(self, failure: Failure, key: int) -> None:
        if isinstance(failure.value, RpcError):
            error = failure.value.raw
        else:
            if not failure.check(CancelledError):
                self.log.failure("a request could not be handled", failure)
            error = codec.encode({"code": codec.INTERNAL_ERROR, "message": "the request could not be handled"})
        self._finish(key, self._session.fail(key, error))

    def _finish(self, key: int, answer: bytes | None) -> None:
        self._running.pop(key, None)
        self._waiting.discard(key)
        if answer is not None:
            self._write(answer)
        if self._state is _State.INPUT_ENDED:
            self._close_if_done()

    def _cancel(self, key: int) -> None:
        self._waiting.discard(key)
        if (running := self._running.pop(key, None)) is not None:
            self._session.finish(key, b"{}")
            running.cancel()

    def _close_if_done(self) -> None:
        if not self._running:
            self.close()

    def waits_for_person(self, key: int) -> None:
        """For the sink: the request waits for a person. If the agent can no longer cancel it, it is cancelled."""
        self._waiting.add(key)
        if self._state is not _State.OPEN:
            self._clock.callLater(0, self._cancel, key)

    def progress(self, key: int, params: bytes) -> None:
        """For the sink: report progress, unless the request was answered or cancelled."""
        if self._session.progress_token(key) is not None:
            self._write(codec.notification("notifications/progress", params))

    def listen(self, key: int, accepted: ChangeFilter) -> None:
        """For the sink: send notifications for the request until it is cancelled."""
        if (line := self._session.listen(key, accepted)) is not None:
            self._write(line)

    def _blocked(self) -> None:
        """The agent does not read: stop reading from it."""
        self.transport.pauseProducing()
        self._peers.changed()

    def _drained(self) -> None:
        if self._state is _State.OPEN:
            self.transport.resumeProducing()
        self._peers.changed()

    def _write(self, line: bytes) -> None:
        if self._state is _State.CLOSED:
            return
        self._sender.send(line)
        if self._sender.waiting > UNREAD_LIMIT and self._peers.others_read(self):
            self._cut_off(f"does not read {self._sender.waiting} bytes")

    def _cut_off(self, why: str) -> None:
        self.log.warn("disconnected an agent that {why}", why=why)
        self._state = _State.CLOSED
        self._abort()

    def _stop_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _abort(self) -> None:
        self._sender.finish()
        self.transport.abortConnection()


class _RequestProgress:
    """Sends the progress of one request to the agent, if it gave a token."""

    __slots__ = ("_connection", "_key", "_line")

    def __init__(self, connection: AgentConnection, key: int, token: codec.Id | None) -> None:
        self._connection, self._key = connection, key
        self._line = None if token is None else ProgressLine(token, lambda params: connection.progress(key, params))

    def waiting(self, message: str) -> None:
        self._connection.waits_for_person(self._key)
        if self._line is not None:
            self._line.waiting(message)

    def listen(self, accepted: ChangeFilter) -> None:
        self._connection.listen(self._key, accepted)

    @property
    def relay(self) -> OnProgress | None:
        return None if self._line is None else self._line.relay


def _agent_gone() -> RpcError:
    return RpcError(codec.encode({"code": codec.INTERNAL_ERROR, "message": "the agent disconnected"}))
