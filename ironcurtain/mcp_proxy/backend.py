"""
The interface of an MCP server behind the proxy, and the client side of the protocol.

:class:`ServerConversation` manages ids, open requests and progress tokens of one connection to a server. Its owner
    transports the lines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.jsonrpc import codec, lenient
from ironcurtain.jsonrpc.framing import TooLong

W = TypeVar("W")

OnProgress = Callable[[dict[str, Any]], None]
"""Called with the parameters of a progress notification, under the server's token."""


class BackendFailed(Unavailable):
    """The server did not answer: it is down, went down during the request, or sent an invalid answer."""

    code = "BACKEND_FAILED"


class UnreadableAnswer(BackendFailed):
    """The server answered, but its answer cannot be read. It is still up."""

    code = "UNREADABLE_ANSWER"


class RpcError(IronCurtainError):
    """
    The server answered with an error.

    :param raw: the JSON error object, unchanged.
    """

    code = "BACKEND_ERROR"

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw.decode("utf-8", "replace")[:1000])
        self.raw = raw


class Introduction(msgspec.Struct, frozen=True):
    """
    What a server sends about itself in the handshake.

    :param process: its process id; 0 if it does not run on this machine.
    """

    capabilities: Mapping[str, Any] = msgspec.field(default_factory=dict)
    instructions: str = ""
    process: int = 0


class Backend(Protocol):
    """One MCP server, up or down."""

    name: str

    @property
    def introduction(self) -> Introduction | None:
        """The handshake's outcome; ``None`` while the server is down."""

    @property
    def oddity(self) -> str:
        """What a server that is not up yet sent instead of messages, in words; empty if nothing."""

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: OnProgress | None = None
    ) -> Awaitable[bytes]:
        """
        Send a request to the server.

        :returns: the raw JSON result. Cancelling sends the server a cancellation.
        :raises UnreadableAnswer: there is an answer that cannot be read.
        :raises BackendFailed: there is no answer.
        :raises RpcError: the answer is an error.
        """

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send the server a notification; ignored while the server is down."""

    def pause(self) -> None:
        """Stop reading from the server for now."""

    def resume(self) -> None:
        """Resume reading from the server."""

    async def start(self, owner: BackendOwner) -> None:
        """Start the server in the background, and restart it whenever it goes down."""

    async def stop(self) -> None:
        """Stop the server for good, with all its processes."""


class BackendOwner(Protocol):
    """Receives the events of a backend."""

    async def capabilities(self, backend: Backend) -> Mapping[str, Any]:
        """:returns: the capabilities for the handshake; may wait until they are known."""

    async def came_up(self, backend: Backend) -> None:
        """The handshake was completed, for the first time or after a restart."""

    def went_down(self, backend: Backend, why: str) -> None:
        """The server went down, or did not start; it will be restarted."""

    def notified(self, backend: Backend, method: str, params: bytes | None) -> None:
        """The server sent a notification other than progress."""

    async def asked(self, backend: Backend, method: str, params: bytes | None) -> bytes:
        """
        The server sent a request. Cancelled if the server cancels it.

        :returns: the raw JSON result.
        :raises RpcError: the answer is an error.
        """


class ServerAnswer(msgspec.Struct, Generic[W], frozen=True):
    """The server answered a request: its waiter, and the raw result or the raw error."""

    waiter: W
    result: bytes | None
    error: bytes | None


class ServerProgress(msgspec.Struct, frozen=True):
    """The server reports progress of a request."""

    notify: OnProgress
    params: dict[str, Any]


class ServerQuestion(msgspec.Struct, frozen=True):
    """The server sent a request."""

    id: codec.Id
    method: str
    params: bytes | None


class QuestionWithdrawn(msgspec.Struct, frozen=True):
    """The server cancelled its request."""

    id: codec.Id


class ServerNotice(msgspec.Struct, frozen=True):
    """The server sent a notification."""

    method: str
    params: bytes | None


class UnreadAnswer(msgspec.Struct, Generic[W], frozen=True):
    """
    The server's answer to a request cannot be read.

    :param waiters: of the request; a batch answers several.
    """

    waiters: tuple[W, ...]
    detail: str


class Garbage(msgspec.Struct, frozen=True):
    """A line that is not a message, or answers no request."""

    detail: str


Event = ServerAnswer[W] | UnreadAnswer[W] | ServerProgress | ServerQuestion | QuestionWithdrawn | ServerNotice | Garbage

EXCERPT = 100
"""Maximum number of bytes shown of a line that is not a message."""


class _Open(msgspec.Struct, Generic[W]):
    waiter: W
    on_progress: OnProgress | None
    endless: bool


class ServerConversation(msgspec.Struct, Generic[W]):
    """The protocol state of one connection to a server: ids, open requests, progress tokens."""

    _open: dict[int, _Open[W]] = msgspec.field(default_factory=dict)
    _last: int = 0

    def request(
        self,
        waiter: W,
        method: str,
        params: Mapping[str, Any] | None,
        on_progress: OnProgress | None,
        *,
        endless: bool = False,
    ) -> tuple[int, bytes]:
        """
        :param waiter: returned with the answer.
        :param params: without a progress token; one is added if ``on_progress`` is given.
        :param endless: whether no answer is expected while the connection lasts.
        :returns: the request's id, and the line to send.
        """
        self._last = number = self._last + 1
        if on_progress is not None:
            params = dict(params or {})
            params["_meta"] = {**params.get("_meta", {}), "progressToken": number}
        line = codec.request(number, method, params)
        self._open[number] = _Open(waiter, on_progress, endless)
        return number, line

    def cancel(self, number: int, reason: str) -> bytes | None:
        """:returns: the line that cancels a request; ``None`` if it has been answered."""
        if self._open.pop(number, None) is None:
            return None
        return codec.notification("notifications/cancelled", {"requestId": number, "reason": reason})

    def waiting(self) -> list[tuple[int, W]]:
        """:returns: the ids and waiters of the open requests, oldest first."""
        return [(number, request.waiter) for number, request in self._open.items()]

    def abandon(self) -> list[W]:
        """
        Forget all open requests.

        :returns: their waiters.
        """
        waiters = [request.waiter for request in self._open.values()]
        self._open.clear()
        return waiters

    def receive(self, line: bytes | TooLong) -> Event[W]:
        """Process one line from the server."""
        if isinstance(line, TooLong):
            return Garbage("a message over the limit")
        try:
            message = lenient.read(line)
        except lenient.Unreadable as e:
            if e.is_answer:
                return self.unread(e.ids, e.detail)
            return Garbage(f"{line[:EXCERPT].decode('utf-8', 'replace')!r}: {e.detail}")
        if isinstance(message, codec.Response):
            return self._answer(message)
        if isinstance(message, codec.Request):
            return ServerQuestion(message.id, message.method, message.params)
        return self._notice(message)

    def _answer(self, response: codec.Response) -> ServerAnswer[W] | Garbage:
        number = self._only() if response.id is None else response.id
        request = self._open.pop(number, None) if isinstance(number, int) else None
        if request is None:
            return Garbage("an answer to no open request")
        return ServerAnswer(request.waiter, response.result, response.error)

    def unread(self, numbers: Sequence[int], why: str) -> UnreadAnswer[W] | Garbage:
        """
        Forget requests whose answer cannot be read.

        :param numbers: their ids; if none are known, it must be the only open request.
        """
        only = self._only() if not numbers else None
        known = dict.fromkeys(numbers if only is None else (only,))
        waiters = tuple(self._open.pop(number).waiter for number in known if number in self._open)
        return UnreadAnswer(waiters, why) if waiters else Garbage(f"an answer to no open request; {why}")

    def _only(self) -> int | None:
        """:returns: the only open request, which an answer without an id must answer."""
        numbers = [number for number, request in self._open.items() if not request.endless]
        return numbers[0] if len(numbers) == 1 else None

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
        identifier = params.get("requestId")
        identifier = identifier if isinstance(identifier, float) else codec.as_id(identifier)
        return QuestionWithdrawn(identifier) if identifier is not None else Garbage("cancelled nothing")

    def _progress(self, params: dict[str, Any]) -> ServerProgress | Garbage:
        token = lenient.as_number(params.get("progressToken"))
        request = self._open.get(token) if token is not None else None
        if request is None or request.on_progress is None:
            return Garbage("progress without a request")
        return ServerProgress(request.on_progress, params)
