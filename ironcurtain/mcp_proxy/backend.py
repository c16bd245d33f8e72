"""
An MCP server behind the proxy: what the proxy needs of it, and the client's side of the protocol.

:class:`ServerConversation` keeps the ids, the open requests and the progress tokens of one connection to a server;
whoever owns it moves the lines.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import TooLong

W = TypeVar("W")

OnProgress = Callable[[dict[str, Any]], None]
"""Takes the parameters of one progress notification, under the server's own token."""

_LONE_SURROGATE = re.compile(
    rb"(?<!\\)((?:\\\\)*)"
    rb"(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class BackendFailed(Unavailable):
    """The server did not answer: it is down, went down meanwhile, or answered with what is no answer."""

    code = "BACKEND_FAILED"


class RpcError(IronCurtainError):
    """
    The server answered with an error.

    :param raw: the JSON error object, as it came.
    """

    code = "BACKEND_ERROR"

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw.decode("utf-8", "replace")[:1000])
        self.raw = raw


@dataclass(frozen=True, slots=True)
class Introduction:
    """
    What a server says of itself in the handshake.

    :param process: its process id, 0 if it has none here.
    """

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str = ""
    process: int = 0


class Backend(Protocol):
    """One MCP server, up or down."""

    name: str

    @property
    def introduction(self) -> Introduction | None:
        """The handshake's outcome; ``None`` while the server is down."""

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: OnProgress | None = None
    ) -> Awaitable[bytes]:
        """
        Ask the server.

        :returns: awaited, the raw JSON result. Cancelling it tells the server so.
        :raises BackendFailed: there is no answer.
        :raises RpcError: the answer is an error.
        """

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Tell the server; nothing happens if it is down."""

    def pause(self) -> None:
        """Read no more from the server for now."""

    def resume(self) -> None:
        """Read from it again."""

    async def start(self, owner: BackendOwner) -> None:
        """Bring it up in the background, and again whenever it goes down."""

    async def stop(self) -> None:
        """Bring it down for good; nothing of it runs afterwards."""


class BackendOwner(Protocol):
    """Who hears from a backend."""

    async def capabilities(self, backend: Backend) -> Mapping[str, Any]:
        """:returns: what to claim in the handshake; may wait until that is known."""

    async def came_up(self, backend: Backend) -> None:
        """The handshake is done, for the first time or again."""

    def went_down(self, backend: Backend, why: str) -> None:
        """It is down, or did not come up; it is tried again later."""

    def notified(self, backend: Backend, method: str, params: bytes | None) -> None:
        """It sent a notification, other than progress."""

    async def asked(self, backend: Backend, method: str, params: bytes | None) -> bytes:
        """
        It asks something; cancelled if it takes the question back.

        :returns: the raw JSON result.
        :raises RpcError: the answer is an error.
        """


class ServerAnswer(msgspec.Struct, Generic[W], frozen=True):
    """The server answered: whoever waited, and the raw result or the raw error."""

    waiter: W
    result: bytes | None
    error: bytes | None


@dataclass(frozen=True, slots=True)
class ServerProgress:
    """The server reports progress of a request."""

    notify: OnProgress
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """The server asks us something."""

    id: codec.Id
    method: str
    params: bytes | None


@dataclass(frozen=True, slots=True)
class QuestionWithdrawn:
    """The server takes a question back."""

    id: codec.Id


@dataclass(frozen=True, slots=True)
class ServerNotice:
    """The server tells us something."""

    method: str
    params: bytes | None


@dataclass(frozen=True, slots=True)
class Garbage:
    """A line that is no message, or answers nothing."""

    detail: str


Event = ServerAnswer[W] | ServerProgress | ServerQuestion | QuestionWithdrawn | ServerNotice | Garbage


@dataclass(slots=True)
class _Open(Generic[W]):
    waiter: W
    on_progress: OnProgress | None


@dataclass(slots=True)
class ServerConversation(Generic[W]):
    """One connection to a server: our ids, our open requests, our progress tokens."""

    _open: dict[int, _Open[W]] = field(default_factory=dict)
    _last: int = 0

    def request(
        self, waiter: W, method: str, params: Mapping[str, Any] | None, on_progress: OnProgress | None
    ) -> tuple[int, bytes]:
        """
        :param waiter: whatever the caller wants back with the answer.
        :param params: without a progress token; one of ours is put in if ``on_progress`` is given.
        :returns: our id, and the line to send.
        """
        self._last = number = self._last + 1
        if on_progress is not None:
            params = dict(params or {})
            params["_meta"] = {**params.get("_meta", {}), "progressToken": number}
        line = codec.request(number, method, params)
        self._open[number] = _Open(waiter, on_progress)
        return number, line

    def cancel(self, number: int, reason: str) -> bytes | None:
        """:returns: the line that cancels a request, or ``None`` if it is answered already."""
        if self._open.pop(number, None) is None:
            return None
        return codec.notification("notifications/cancelled", {"requestId": number, "reason": reason})

    def waiting(self) -> list[tuple[int, W]]:
        """:returns: the ids and waiters of the open requests, oldest first."""
        return [(number, request.waiter) for number, request in self._open.items()]

    def abandon(self) -> list[W]:
        """:returns: all who still wait; nobody does afterwards."""
        waiters = [request.waiter for request in self._open.values()]
        self._open.clear()
        return waiters

    def receive(self, line: bytes | TooLong) -> Event[W]:
        """Take one line from the server."""
        if isinstance(line, TooLong):
            return Garbage("a message over the limit")
        if b"\r" in line:  # white space to JSON, but the end of a line to some readers
            line = line.replace(b"\r", b" ")
        try:
            message = _parse(line)
        except codec.InvalidMessage as e:
            return Garbage(e.detail)
        if isinstance(message, codec.Response):
            return self._answer(message)
        if isinstance(message, codec.Request):
            return ServerQuestion(message.id, message.method, message.params)
        return self._notice(message)

    def _answer(self, response: codec.Response) -> ServerAnswer[W] | Garbage:
        request = self._open.pop(response.id, None) if isinstance(response.id, int) else None
        if request is None:
            return Garbage("an answer to no open request")
        return ServerAnswer(request.waiter, response.result, response.error)

    def _notice(self, notification: codec.Notification) -> ServerProgress | QuestionWithdrawn | ServerNotice | Garbage:
        if notification.method not in ("notifications/progress", "notifications/cancelled"):
            return ServerNotice(notification.method, notification.params)
        try:
            params = codec.decode(notification.params or b"")
        except codec.InvalidMessage as e:
            return Garbage(e.detail)
        if not isinstance(params, dict):
            return Garbage(f"{notification.method} without parameters")
        if notification.method == "notifications/progress":
            return self._progress(params)
        identifier = codec.as_id(params.get("requestId"))
        return QuestionWithdrawn(identifier) if identifier is not None else Garbage("cancelled nothing")

    def _progress(self, params: dict[str, Any]) -> ServerProgress | Garbage:
        token = codec.as_id(params.get("progressToken"))
        request = self._open.get(token) if isinstance(token, int) else None
        if request is None or request.on_progress is None:
            return Garbage("progress that nobody asked for")
        return ServerProgress(request.on_progress, params)


def _parse(line: bytes) -> codec.Message:
    try:
        return codec.parse(line)
    except codec.InvalidMessage:
        mended = _mend(line)
        if mended == line:
            raise
        return codec.parse(mended)


def _mend(line: bytes) -> bytes:
    # A server that cut a text in the middle of a character has an answer all the same: the broken character becomes
    # U+FFFD, as any terminal would show it.
    if not line.isascii():
        line = line.decode("utf-8", "replace").encode()
    return _LONE_SURROGATE.sub(lambda found: found[1] + (found[2] or b"\\ufffd"), line)
