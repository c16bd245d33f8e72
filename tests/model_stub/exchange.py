"""One request and its answer, from the headers to the last byte."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.web.http import Request

from tests.model_stub import agents, surroundings
from tests.model_stub.dialect import Asked, Dialect, Invalid
from tests.model_stub.record import Record
from tests.model_stub.replies import Answer, Dropped, Refusal, Reply

if TYPE_CHECKING:
    from tests.model_stub.server import ModelStub


class Gone(Exception):
    """The client closed the connection before the answer was whole."""


class Exchange:
    """
    :param stub: whose replies answer, and who remembers the request.
    :param request: whole, with its body.
    """

    def __init__(self, stub: ModelStub, request: Request) -> None:
        self._stub, self._request = stub, request
        headers = {
            name.decode("latin-1").lower(): values[-1].decode("latin-1")
            for name, values in request.requestHeaders.getAllRawHeaders()
        }
        path, _, query = request.uri.decode("latin-1").partition("?")
        self.record = Record(request.method.decode(), path, headers, request.content.read(), query)  # type: ignore[union-attr]
        self.record.agent = agents.agent(headers)
        with suppress(ValueError):
            self.record.json = json.loads(self.record.body)
        self._errors: Dialect = surroundings.errors_of(path)
        self._gone: Deferred[None] | None = None
        self._aborted = False
        request.notifyFinish().addCallbacks(self._finished, self._lost)
        stub.requests.append(self.record)

    def _finished(self, _: object) -> None:
        self.record.over("finished")

    def _lost(self, _: object) -> None:
        self._aborted = True
        self.record.over("aborted")
        if self._gone is not None:
            self._gone.errback(Gone())

    async def run(self) -> None:
        """
        Answer.

        :raises Gone: nobody is there to be answered.
        """
        record = self.record
        try:
            if aside := surroundings.aside(record.method, record.path, record.headers):
                record.purpose, status, body = aside
                self._send(status, body)
            else:
                await self._model(surroundings.dialect(record.method, record.path, record.headers))
        except Invalid as e:
            record.refused = str(e)
            self._send(e.status, self._errors.error_body(e.status, str(e)), e.headers)

    async def _model(self, dialect: Dialect) -> None:
        record, self._errors = self.record, dialect
        record.provider = dialect.NAME
        dialect.check_headers(record.headers, self._stub.keys[dialect.NAME])
        asked = record.asked = dialect.asked(record.path, record.headers, record.body)
        if asked.counting:
            record.purpose = "count"
            self._send(200, dialect.counted(len(record.body) // 4))
        elif aside := agents.side(asked, record.headers):
            record.purpose, answer = aside
            await self._answer(dialect, answer, asked)
        else:
            record.purpose = agents.TURN
            await self._reply(dialect, self._next(dialect, asked), asked)

    def _next(self, dialect: Dialect, asked: Asked) -> Reply:
        replies = self._stub.replies
        reply = replies[0] if replies else Refusal(400, message="no reply is left")
        if isinstance(reply, Answer):
            reply = dialect.spoken(reply, asked)  # what cannot be said stays, so that whoever tries again sees the same
        del replies[:1]
        return reply

    async def _reply(self, dialect: Dialect, reply: Reply, asked: Asked) -> None:
        match reply:
            case Dropped():
                self._request.transport.abortConnection()  # type: ignore[union-attr]
            case Refusal(status, type, message, headers, body):
                made = dialect.error_body(status, message, type, retry_after=headers.get("retry-after", ""))
                self._send(status, body.encode() or made, headers)
            case Answer():
                await self._answer(dialect, reply, asked)

    async def _answer(self, dialect: Dialect, answer: Answer, asked: Asked) -> None:
        number = len(self._stub.requests)
        if asked.stream:
            await self._stream(dialect, answer, dialect.events(answer, asked.model, number))
        else:
            self._send(200, dialect.whole(answer, asked.model, number), answer.headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        echoed = self._echoed(body)
        self._request.setResponseCode(status)
        self._head("application/json", headers or {})
        self._request.setHeader("content-length", str(len(echoed)))
        self._request.write(echoed)
        self._request.finish()

    def _head(self, type: str, headers: dict[str, str]) -> None:
        self._request.setHeader("content-type", type)
        self._request.setHeader("request-id", "req_stub")
        for name, value in headers.items():
            self._request.setHeader(name, self._echoed(value.encode()))

    def _echoed(self, data: bytes) -> bytes:
        if b"{{key" not in data:
            return data
        key = self._errors.key(self.record.headers)
        escaped = "".join(f"\\u{ord(character):04x}" for character in key)
        data = data.replace(b"{{key}}", key.encode()).replace(b"{{key:escaped}}", escaped.encode())
        return data.replace(b"{{key:base64}}", base64.b64encode(key.encode()))

    async def _stream(self, dialect: Dialect, answer: Answer, made: list[bytes]) -> None:
        self._head(getattr(dialect, "STREAM", "text/event-stream; charset=utf-8"), answer.headers)
        if answer.end != "complete":
            made = made[: answer.after] + ([dialect.error_event(answer)] if answer.end == "error" else [])
        self._request.write(b"")  # sends the head
        for piece in _slices([self._echoed(event) for event in made], answer.slice):
            if answer.held:
                await self._while_there(self._stub.hold())
            if answer.pause:
                await self._while_there(deferLater(self._stub.reactor, answer.pause))
            if self._aborted:
                raise Gone
            self._request.write(piece.replace(b"{{now}}", b"%.6f" % time.monotonic()))
        if answer.end == "stall":
            await self._while_there(Deferred())
        elif answer.end == "cut":
            # Aborting would throw away what was written; this ends the connection after it, without the last chunk.
            self._request.channel.loseConnection()
        else:
            self._request.finish()

    async def _while_there(self, waiting: Deferred[None]) -> None:
        if self._aborted:
            raise Gone
        self._gone = waiting
        await waiting
        self._gone = None


def _slices(events: list[bytes], size: int) -> Iterator[bytes]:
    if not size:
        yield from events
        return
    stream = b"".join(events)
    for start in range(0, len(stream), size):
        yield stream[start : start + size]
