"""The stub itself: an HTTPS server on a loopback port that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import SSL4ServerEndpoint
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from tests.model_stub import anthropic
from tests.model_stub.certificates import Authority
from tests.model_stub.replies import Answer, Dropped, Refusal, Reply

DEFAULT_KEY = "sk-ant-api03-stub-key-for-tests-0000000000000000"
"""The key that the stub accepts unless told otherwise."""


@dataclass
class Record:
    """
    One request that was made.

    :ivar headers: by name in lower case; the last value of each.
    :ivar json: the body, where it was JSON.
    :ivar refused: the message of the error the request itself led to, empty when it followed the rules.
    :ivar ended: fires with ``"finished"``, or with ``"aborted"`` if the client went away before.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    json: Any = None
    refused: str = ""
    ended: Deferred[str] = field(default_factory=Deferred)


class ModelStub:
    """
    A model provider for tests.

    :param replies: used up in order, one a valid request; when none is left, requests are refused.
    :param keys: the keys accepted.
    :ivar requests: every request made so far.
    :ivar connections: how many connections were ever opened.
    """

    def __init__(self, reactor: Any, replies: Iterable[Reply] = (), *, keys: Iterable[str] = (DEFAULT_KEY,)) -> None:
        self.reactor = reactor
        self.replies = list(replies)
        self.keys = frozenset(keys)
        self.authority = Authority.make()
        self.requests: list[Record] = []
        self.connections = 0
        self._open: set[Any] = set()
        self._all_closed: Deferred[None] | None = None
        self._held: list[Deferred[None]] = []
        self._releases = 0
        self._port: IListeningPort | None = None

    async def start(self, port: int = 0, *, names: tuple[str, ...] = ("localhost", "127.0.0.1")) -> int:
        """
        Listen on the loopback address.

        :param names: what the server's certificate is for.
        :returns: the port.
        """
        endpoint = SSL4ServerEndpoint(self.reactor, port, self.authority.server(*names), interface="127.0.0.1")
        site = _CountingSite(self)
        self._port = await endpoint.listen(site)
        return self.port

    @property
    def open_connections(self) -> int:
        """How many connections are open."""
        return len(self._open)

    @property
    def port(self) -> int:
        """The port listened on."""
        assert self._port is not None, "not started"
        return int(self._port.getHost().port)  # type: ignore[attr-defined]

    @property
    def url(self) -> str:
        """What clients are to use as base URL."""
        return f"https://localhost:{self.port}"

    async def stop(self) -> None:
        """Listen no longer, and close what is still open."""
        if self._port is not None:
            stopped, self._port = self._port.stopListening(), None
            if stopped is not None:
                await stopped
        if self._open:
            self._all_closed = Deferred()
            for transport in list(self._open):
                transport.abortConnection()
            await self._all_closed

    def opened(self, transport: Any) -> None:
        """The site has a new connection."""
        self.connections += 1
        self._open.add(transport)

    def closed(self, transport: Any) -> None:
        """One of the site's connections is gone."""
        self._open.discard(transport)
        if self._all_closed is not None and not self._open:
            self._all_closed.callback(None)

    def release(self, count: int = 1) -> None:
        """Let an answer that is ``held`` send its next events."""
        for _ in range(count):
            if self._held:
                self._held.pop(0).callback(None)
            else:
                self._releases += 1

    def hold(self) -> Deferred[None]:
        """:returns: fires at the next :meth:`release`."""
        waiting: Deferred[None] = Deferred()
        if self._releases:
            self._releases -= 1
            waiting.callback(None)
        else:
            self._held.append(waiting)
        return waiting


class _CountingSite(Site):
    def __init__(self, stub: ModelStub) -> None:
        super().__init__(_Everything(stub), reactor=stub.reactor)
        self.timeOut = None
        self._stub = stub

    def buildProtocol(self, addr: IAddress | None) -> Any:
        protocol: Any = super().buildProtocol(addr)
        made, lost, transports = protocol.makeConnection, protocol.connectionLost, []

        def makeConnection(transport: Any) -> None:
            transports.append(transport)
            self._stub.opened(transport)
            made(transport)

        def connectionLost(reason: Failure) -> None:
            self._stub.closed(*transports)
            lost(reason)

        protocol.makeConnection, protocol.connectionLost = makeConnection, connectionLost
        return protocol


class _Everything(Resource):
    """Every path; the API's own errors for those that do not exist."""

    isLeaf = True
    log = Logger()

    def __init__(self, stub: ModelStub) -> None:
        super().__init__()
        self._stub = stub

    def render(self, request: Any) -> int:
        exchange = Deferred.fromCoroutine(_Exchange(self._stub, request).run())
        exchange.addErrback(lambda failure: failure.trap(_Gone))
        exchange.addErrback(self._broken, request)
        return NOT_DONE_YET

    def _broken(self, failure: Failure, request: Any) -> None:
        self.log.failure("the stub itself is wrong", failure)
        request.transport.abortConnection()


class _Gone(Exception):
    """The client closed the connection before the answer was whole."""


class _Exchange:
    """One request and its answer."""

    def __init__(self, stub: ModelStub, request: Request) -> None:
        self._stub, self._request = stub, request
        headers = {
            name.decode("latin-1").lower(): values[-1].decode("latin-1")
            for name, values in request.requestHeaders.getAllRawHeaders()
        }
        path = request.path.decode("latin-1")
        self.record = Record(request.method.decode(), path, headers, request.content.read())  # type: ignore[union-attr]
        self._gone: Deferred[None] | None = None
        self._aborted = False
        request.notifyFinish().addCallbacks(self._finished, self._lost)
        stub.requests.append(self.record)

    def _finished(self, _: object) -> None:
        self.record.ended.callback("finished")

    def _lost(self, _: object) -> None:
        self._aborted = True
        self.record.ended.callback("aborted")
        if self._gone is not None:
            self._gone.errback(_Gone())

    async def run(self) -> None:
        try:
            body = self._checked()
        except anthropic.Invalid as e:
            self.record.refused = str(e)
            self._send(e.status, anthropic.error_body(e.status, str(e)))
            return
        if self.record.path.endswith("/count_tokens"):
            self._send(200, json.dumps({"input_tokens": len(self.record.body) // 4}).encode())
            return
        reply = self._stub.replies.pop(0) if self._stub.replies else Refusal(400, message="no reply is left")
        await self._reply(reply, body)

    def _checked(self) -> dict[str, Any]:
        record = self.record
        if record.method != "POST" or record.path not in ("/v1/messages", "/v1/messages/count_tokens"):
            raise anthropic.Invalid("Not found", 404)
        anthropic.check_headers(record.headers, self._stub.keys)
        body = record.body if record.path == "/v1/messages" else _with_limit(record.body)
        record.json = anthropic.check_body(body)
        return record.json  # type: ignore[no-any-return]

    async def _reply(self, reply: Reply, body: dict[str, Any]) -> None:
        model, number = body["model"], len(self._stub.requests)
        match reply:
            case Dropped():
                self._request.transport.abortConnection()  # type: ignore[union-attr]
            case Refusal():
                raw = reply.body.encode() or anthropic.error_body(reply.status, reply.message, reply.type)
                self._send(reply.status, raw, reply.headers)
            case Answer() if not body.get("stream"):
                self._send(200, anthropic.whole(reply, model, number))
            case Answer():
                await self._stream(reply, model, number)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._request.setResponseCode(status)
        self._request.setHeader("content-type", "application/json")
        self._request.setHeader("request-id", "req_stub")
        for name, value in (headers or {}).items():
            self._request.setHeader(name, value)
        self._request.setHeader("content-length", str(len(body)))
        self._request.write(body)
        self._request.finish()

    async def _stream(self, answer: Answer, model: str, number: int) -> None:
        self._request.setHeader("content-type", "text/event-stream; charset=utf-8")
        self._request.setHeader("request-id", "req_stub")
        made = anthropic.events(answer, model, number)
        if answer.end != "complete":
            made = made[: answer.after] + ([anthropic.error_event(answer)] if answer.end == "error" else [])
        self._request.write(b"")  # sends the head
        for piece in _slices(made, answer.slice):
            if answer.held:
                await self._while_there(self._stub.hold())
            if answer.pause:
                await self._while_there(deferLater(self._stub.reactor, answer.pause))
            if self._aborted:
                raise _Gone
            self._request.write(piece)
        if answer.end == "stall":
            await self._while_there(Deferred())
        elif answer.end == "cut":
            # Aborting would throw away what was written; this ends the connection after it, without the last chunk.
            self._request.channel.loseConnection()
        else:
            self._request.finish()

    async def _while_there(self, waiting: Deferred[None]) -> None:
        if self._aborted:
            raise _Gone
        self._gone = waiting
        await waiting
        self._gone = None


def _with_limit(body: bytes) -> bytes:
    # Counting takes no max_tokens; everything else is as for an answer.
    try:
        return json.dumps({**json.loads(body), "max_tokens": 1}).encode()
    except (ValueError, TypeError):
        return body


def _slices(events: list[bytes], size: int) -> Iterator[bytes]:
    if not size:
        yield from events
        return
    stream = b"".join(events)
    for start in range(0, len(stream), size):
        yield stream[start : start + size]
