"""The control API's server: routes from HTTP to the operations, for peers with the same uid only."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.web import http
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from ironcurtain.control import wire
from ironcurtain.control.stream import EventStream
from ironcurtain.errors import IronCurtainError, NotAllowed, NotFound, UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.operations import Principal
from ironcurtain.operations.operations import Operations
from ironcurtain.operations.principal import owner
from ironcurtain.platform.sockets import peer_uid
from ironcurtain.session.model import SessionInfo, SessionRequest
from ironcurtain.session.session import Session
from ironcurtain.text.display import shorten

DIGITS = 18
"""Maximum number of digits of a number in a request: more than any counter reaches."""

T = TypeVar("T")


class ControlResource(Resource):
    """
    All paths of the API, described in ``docs/control-api.yaml``.

    :param who: returns the principal of a request, or raises :class:`~ironcurtain.errors.NotAllowed`.
    """

    isLeaf = True
    log = Logger()

    def __init__(self, operations: Operations, who: Callable[[Request], Principal]) -> None:
        super().__init__()
        self._operations, self._who = operations, who

    def render(self, request: Request) -> int:
        """Answer one request; exceptions become error responses."""
        Deferred.fromCoroutine(self._answer(request)).addErrback(self._crashed, request)
        return NOT_DONE_YET

    async def _answer(self, request: Request) -> None:
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)
        try:
            who = self._who(request)
            wire.require_time(request, time.monotonic())
            answer = await self._route(who, request)
        except IronCurtainError as e:
            if not gone:
                _finish(request, wire.error_status(e), wire.error_body(e))
            return
        except CancelledError:
            if not gone:
                raise
            return
        if isinstance(answer, EventStream):
            answer.begin(request)
        elif answer is NOT_DONE_YET:
            return
        elif not gone:
            _finish(request, 200, msgspec.json.encode(answer))
        elif isinstance(answer, SessionInfo) and request.method == b"POST":
            await _end_hold(self._operations, who, answer.id)  # the client that started it is already gone

    async def _route(self, who: Principal, request: Request) -> object:
        path = request.path.decode("ascii", "replace")
        for method, pattern, handler in _ROUTES:
            match = pattern.fullmatch(path)
            if match and method == request.method:
                return await handler(self._operations, who, request, *match.groups())
        asked = f"{request.method.decode('ascii', 'replace')} {path}"
        raise NotFound(f"there is nothing at {shorten(asked, 100)}")

    def _crashed(self, failure: Any, request: Request) -> None:
        self.log.failure("a control request failed", failure=failure)
        if not request.finished and request.channel is not None:
            error = IronCurtainError("internal error: see the log")
            _finish(request, 500, wire.error_body(error))


class QuietSite(Site):
    """A site that leaves no line for each request: consoles ask every few seconds, and what counts is audited."""

    noisy = False

    def log(self, request: http.Request) -> None:
        """Write nothing."""


class BoundedRequest(Request):
    """A request that keeps only as much of a body as shows that it is too long."""

    def handleContentChunk(self, data: bytes) -> None:
        kept = self.content.tell() if self.content is not None else 0
        super().handleContentChunk(data[: wire.BODY_LIMIT + 1 - kept])


def _finish(request: Request, status: int, body: bytes) -> None:
    if request.finished:  # a stream of events that ended
        return
    request.setResponseCode(status)
    request.setHeader("content-type", "application/json")
    request.setHeader("content-length", str(len(body)))
    request.write(body)
    request.finish()


def _body(request: Request, type_: type[T]) -> T:
    data = request.content.read(wire.BODY_LIMIT + 1) if request.content is not None else b""
    if len(data) > wire.BODY_LIMIT:
        raise UsageError(f"the body is over {wire.BODY_LIMIT} bytes")
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise UsageError(f"the body is wrong: {e}") from None


def _number(request: Request, name: bytes) -> int:
    text = request.args.get(name, [b"0"])[0]
    if not text.isdigit() or len(text) > DIGITS:
        raise UsageError(f"{name.decode()} must be a number")
    return int(text)


async def _sessions(operations: Operations, who: Principal, request: Request) -> object:
    return operations.sessions(who)


async def _start(operations: Operations, who: Principal, request: Request) -> object:
    body = _body(request, wire.StartBody)
    if body.workspace and (not body.workspace.startswith("/") or "\0" in body.workspace):
        raise UsageError("workspace must be an absolute path")
    workspace = Path(body.workspace) if body.workspace else None
    wanted = SessionRequest(
        *(body.kind, body.task, workspace, body.options),
        resume=body.resume,
        terminal=body.terminal,
        typed=body.typed,
        budget=body.budget,
    )
    follows, holds, streams = bool(_number(request, b"follow")), bool(_number(request, b"hold")), list[EventStream]()

    def made(session: Session) -> None:
        if follows:
            streams.append(EventStream(operations, who, session.id, 0))
            streams[0].begin(request)

    starting = Deferred.fromCoroutine(operations.start(who, wanted, made, body.attended))
    request.notifyFinish().addErrback(lambda _: starting.cancel())
    try:
        info = await starting
    except IronCurtainError as e:
        if not streams:
            raise
        streams[0].end("failed", wire.error_body(e))
        return None
    if not streams:
        return info
    holds = holds and request.channel is not None  # else the client is gone
    if holds:
        _hold(operations, who, request, info.id)
    streams[0].end("started", msgspec.json.encode(info), stay=holds)
    return NOT_DONE_YET if holds else info


async def _session(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return operations.session(who, name)


async def _stop(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return await operations.stop(who, name, bool(_number(request, b"held")))


async def _join(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return operations.join(who, name)


async def _release(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return operations.release(who, name)


async def _send(operations: Operations, who: Principal, request: Request, name: str) -> object:
    body = _body(request, wire.MessageBody)
    reply = await operations.send(who, name, body.text, body.typed)
    return {"text": reply.text, "usage": reply.usage}


async def _terminal(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return operations.ticket(who, name, _body(request, wire.AttachBody).mode)


async def _cancel(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return operations.cancel(who, name)


async def _withdraw(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return {"text": operations.withdraw(who, name, _body(request, wire.WithdrawBody).number)}


async def _undo(operations: Operations, who: Principal, request: Request, name: str) -> object:
    body = _body(request, wire.UndoBody)
    return await operations.undo(who, name, body.snapshot, body.everything)


async def _history(operations: Operations, who: Principal, request: Request, name: str) -> object:
    return operations.history(who, name)


async def _events(operations: Operations, who: Principal, request: Request, name: str) -> object:
    operations.session(who, name)
    if _number(request, b"hold"):
        _hold(operations, who, request, name)
    return EventStream(operations, who, name, _number(request, b"after"))


def _hold(operations: Operations, who: Principal, request: Request, name: str) -> None:
    operations.hold(who, name)
    request.notifyFinish().addErrback(lambda _: Deferred.fromCoroutine(_end_hold(operations, who, name, held=True)))


async def _end_hold(operations: Operations, who: Principal, name: str, held: bool = False) -> None:
    with suppress(NotFound):
        await operations.stop(who, name, held)


async def _escalations(operations: Operations, who: Principal, request: Request) -> object:
    return operations.escalations(who, bool(_number(request, b"closed")), _number(request, b"after"))


async def _decide(operations: Operations, who: Principal, request: Request, number: str) -> object:
    body = _body(request, wire.DecisionBody)
    if body.decision not in (Outcome.APPROVED, Outcome.DENIED):
        raise UsageError("decision must be approved or denied")
    return operations.decide(who, int(number), Outcome(body.decision), body.digest, body.keep, body.calls)


async def _answer(operations: Operations, who: Principal, request: Request, number: str) -> object:
    body = _body(request, wire.AnswerBody)
    return operations.answer(who, int(number), body.content, body.digest)


async def _shown(operations: Operations, who: Principal, request: Request, number: str) -> object:
    body = _body(request, wire.ShownBody)
    operations.shown(who, int(number), body.digest, body.calls)
    return {}


async def _deny_all(operations: Operations, who: Principal, request: Request) -> object:
    return {"denied": operations.deny_all(who, _body(request, wire.DenyAllBody).session or None)}


async def _permissions(operations: Operations, who: Principal, request: Request) -> object:
    return operations.permissions(who)


async def _revoke(operations: Operations, who: Principal, request: Request, number: str) -> object:
    return operations.revoke(who, int(number))


async def _reload(operations: Operations, who: Principal, request: Request) -> object:
    return operations.reload(who)


_NAME = r"([0-9a-f-]{1,40})"
_ROUTES: tuple[tuple[bytes, re.Pattern[str], Callable[..., Awaitable[object]]], ...] = (
    (b"GET", re.compile(r"/v1/sessions"), _sessions),
    (b"POST", re.compile(r"/v1/sessions"), _start),
    (b"GET", re.compile(rf"/v1/sessions/{_NAME}"), _session),
    (b"DELETE", re.compile(rf"/v1/sessions/{_NAME}"), _stop),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/join"), _join),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/release"), _release),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/messages"), _send),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/terminal"), _terminal),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/cancel"), _cancel),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/withdraw"), _withdraw),
    (b"POST", re.compile(rf"/v1/sessions/{_NAME}/undo"), _undo),
    (b"GET", re.compile(rf"/v1/sessions/{_NAME}/history"), _history),
    (b"GET", re.compile(rf"/v1/sessions/{_NAME}/events"), _events),
    (b"GET", re.compile(r"/v1/escalations"), _escalations),
    (b"POST", re.compile(rf"/v1/escalations/([0-9]{{1,{DIGITS}}})"), _decide),
    (b"POST", re.compile(rf"/v1/escalations/([0-9]{{1,{DIGITS}}})/shown"), _shown),
    (b"POST", re.compile(rf"/v1/escalations/([0-9]{{1,{DIGITS}}})/answer"), _answer),
    (b"POST", re.compile(r"/v1/escalations/deny-all"), _deny_all),
    (b"GET", re.compile(r"/v1/permissions"), _permissions),
    (b"DELETE", re.compile(rf"/v1/permissions/([0-9]{{1,{DIGITS}}})"), _revoke),
    (b"POST", re.compile(r"/v1/reload"), _reload),
)


def local_principal(request: Request) -> Principal:
    """
    :returns: the owner of the home, if the peer on the UNIX socket has the same uid, or the principal that it acts for:
        the peer could do everything itself.
    :raises NotAllowed: the uid differs, or a role does not exist.
    """
    connection: socket.socket = request.channel.transport.socket  # type: ignore[union-attr]
    if (uid := peer_uid(connection)) != os.geteuid():
        raise NotAllowed(f"the control socket serves user {os.geteuid()} only, not {uid}")
    return wire.claimed_principal(request) or owner()


def make_site(reactor: Any, operations: Operations) -> Site:
    """:returns: what serves the API to clients of a UNIX socket."""
    return QuietSite(ControlResource(operations, local_principal), requestFactory=BoundedRequest, reactor=reactor)
