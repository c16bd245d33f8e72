"""
The protocol state machine of one agent's connection: takes lines, returns commands.

It implements the protocol's lifecycle: the negotiated version, the agent's open requests, and the open requests to the
agent. The router implements the methods; other methods are refused here. The first request decides whether the
connection begins with a handshake, or has none (revision 2026-07-28).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import INBOUND_LIMIT, TooLong
from ironcurtain.mcp_proxy import envelope
from ironcurtain.mcp_proxy.envelope import MODERN_VERSION, BadEnvelope, ChangeFilter

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The protocol's revisions with an ``initialize`` handshake, oldest first."""

NEWEST_VERSION = VERSIONS[-1]

OPEN_REQUESTS = 1024
"""Maximum number of open requests of one agent (the highest number seen is 16)."""

OPEN_BYTES = 4 * INBOUND_LIMIT
"""Maximum total size in bytes of the parameters of one agent's open requests: 32 MiB."""

INITIALIZE = "initialize"


class SendLine(msgspec.Struct, frozen=True):
    """Write this line to the agent."""

    line: bytes


class Start(msgspec.Struct, frozen=True):
    """
    Handle a request, and pass the outcome to :meth:`AgentSession.finish` or :meth:`AgentSession.fail`.

    :param key: identifies the request. Never reused, unlike an agent's ids.
    """

    key: int
    method: str
    params: dict[str, Any]


class Cancel(msgspec.Struct, frozen=True):
    """Cancel this request. It must not be answered."""

    key: int


class Initialized(msgspec.Struct, frozen=True):
    """The handshake is complete: requests and notifications may be sent to the agent."""


class Answered(msgspec.Struct, frozen=True):
    """
    The agent answered a request.

    :param result: raw JSON; ``None`` if it answered with ``error``.
    """

    question: int
    result: bytes | None
    error: bytes | None


Command = SendLine | Start | Cancel | Initialized | Answered


class _Open(msgspec.Struct, frozen=True):
    id: codec.Id
    method: str
    size: int
    token: codec.Id | None
    level: str
    """Lowest level of the log messages that it asks for; empty: none, or by ``logging/setLevel``."""


class AgentSession(msgspec.Struct):
    """
    The protocol state of one connection.

    :param methods: the methods that the router handles, in any revision.
    """

    methods: Collection[str]
    version: str = ""
    """The negotiated revision; empty before the first request."""
    client: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """The agent's ``initialize`` parameters."""
    answered: bool = False
    """Whether ``initialize`` was answered, so that the agent may have lists."""
    initialized: bool = False
    """Whether the agent has completed the handshake."""
    junk: int = 0
    """Number of consecutive lines that were invalid or too long."""
    _open: dict[int, _Open] = msgspec.field(default_factory=dict)
    _ids: dict[codec.Id, int] = msgspec.field(default_factory=dict)
    _questions: set[int] = msgspec.field(default_factory=set)
    _filters: dict[int, ChangeFilter] = msgspec.field(default_factory=dict)
    _keys: int = 0
    _asked: int = 0
    _bytes: int = 0

    @property
    def modern(self) -> bool:
        """Whether the connection has no handshake."""
        return self.version == MODERN_VERSION

    def receive(self, line: bytes | TooLong) -> Command | None:
        """
        Process one line.

        :returns: the resulting command, if any.
        """
        self.junk += 1
        if isinstance(line, TooLong):
            return _refuse(None, codec.INVALID_REQUEST, f"message is larger than {INBOUND_LIMIT} bytes")
        try:
            message = codec.parse(line)
        except codec.InvalidMessage as e:
            return _refuse(e.id, e.code_number, e.detail)
        self.junk = 0
        if isinstance(message, codec.Request):
            return self._request(message)
        if isinstance(message, codec.Notification):
            return self._notification(message)
        return self._response(message)

    def finish(self, key: int, result: bytes) -> bytes | None:
        """:returns: the line that answers a request; ``None`` if the request was cancelled."""
        request = self._close(key)
        if request is None:
            return None
        self.answered = self.answered or request.method == INITIALIZE
        if self.modern:
            try:
                result = envelope.completed(request.method, result)
            except codec.InvalidMessage as e:
                return codec.error(request.id, e.code_number, e.detail)
        return codec.result(request.id, result)

    def fail(self, key: int, error: bytes) -> bytes | None:
        """
        :param error: a raw JSON error object.
        :returns: the line that answers a request with an error; ``None`` if the request was cancelled.
        """
        request = self._close(key)
        if request is None:
            return None
        if request.method == INITIALIZE:
            self.version, self.client = "", {}
        return codec.raw_error(request.id, error)

    def progress_token(self, key: int) -> codec.Id | None:
        """:returns: the progress token of an open request, if it has one."""
        request = self._open.get(key)
        return None if request is None else request.token

    def listen(self, key: int, accepted: ChangeFilter) -> bytes | None:
        """:returns: the line that confirms a ``subscriptions/listen`` request; ``None`` if that was cancelled."""
        if key not in self._open:
            return None
        self._filters[key] = accepted
        params = {"notifications": envelope.written_filter(accepted)}
        return self._subscribed(key, "notifications/subscriptions/acknowledged", codec.encode(params))

    def listens_to(self, uri: str) -> bool:
        """Whether an open ``subscriptions/listen`` request asked for a resource."""
        return any(uri in accepted.uris for accepted in self._filters.values())

    def notices(self, method: str, params: bytes | None) -> list[bytes]:
        """:returns: the lines of a notification on a connection without handshake: one for each request for it."""
        if method == "notifications/message":
            return [codec.notification(method, params)] if self._wants_message(params) else []
        uri = _member(params, "uri")
        return [self._subscribed(k, method, params) for k, each in self._filters.items() if each.accepts(method, uri)]

    def _subscribed(self, key: int, method: str, params: bytes | None) -> bytes:
        return codec.notification(method, envelope.subscribed(params, self._open[key].id))

    def _wants_message(self, params: bytes | None) -> bool:
        level = _member(params, "level")
        wanted = [envelope.LEVELS.index(each.level) for each in self._open.values() if each.level]
        return bool(wanted) and level in envelope.LEVELS and envelope.LEVELS.index(level) >= min(wanted)

    def ask(self, method: str, params: bytes | None) -> tuple[int, bytes]:
        """:returns: the number of a new request to the agent, and its line."""
        self._asked += 1
        self._questions.add(self._asked)
        return self._asked, codec.request(self._asked, method, params)

    def withdraw(self, question: int) -> bytes | None:
        """:returns: the line that cancels a request to the agent; ``None`` if it was answered."""
        if question not in self._questions:
            return None
        self._questions.discard(question)
        return codec.notification("notifications/cancelled", {"requestId": question})

    def _request(self, request: codec.Request) -> Command:
        if request.id in self._ids:
            return _refuse(request.id, codec.INVALID_REQUEST, "a request with this id is open already")
        if request.method == "ping" and not self._is_modern(request.params):
            return SendLine(codec.result(request.id, b"{}"))
        if request.method not in self.methods:
            return _refuse(request.id, codec.METHOD_NOT_FOUND, "unknown method")
        size = len(request.params or b"")
        if len(self._open) >= OPEN_REQUESTS or (self._bytes + size > OPEN_BYTES and self._open):
            return _refuse(request.id, codec.INTERNAL_ERROR, "too many requests are open: wait for answers")
        try:
            params = codec.decode(request.params) if request.params is not None else {}
        except codec.InvalidMessage as e:
            return _refuse(request.id, e.code_number, e.detail)
        if not isinstance(params, dict):
            return _refuse(request.id, codec.INVALID_PARAMS, "params must be an object")
        try:
            params, level = self._admitted(request.method, params)
        except BadEnvelope as e:
            return SendLine(codec.error(request.id, e.code_number, e.detail, e.data))
        return self._begin(request, params, size, level)

    def _is_modern(self, raw: bytes | None) -> bool:
        if self.version:
            return self.modern
        try:
            params = codec.decode(raw or b"{}")
        except codec.InvalidMessage:
            return False
        return isinstance(params, dict) and envelope.is_enveloped(params)

    def _admitted(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """
        Check a request against the connection's revision; the first one decides it.

        :returns: its parameters without the envelope, and the level of the log messages that it asks for.
        :raises BadEnvelope: it does not fit.
        """
        enveloped = envelope.is_enveloped(params)
        shakes_hands = method == INITIALIZE and "protocolVersion" in params
        begins = (enveloped or method in envelope.MODERN_ONLY) and not shakes_hands
        if self.modern or (begins and not self.version):
            if method == INITIALIZE and not enveloped:
                raise envelope.unsupported(params.get("protocolVersion"))
            if method in envelope.HANDSHAKE_ONLY:
                raise BadEnvelope(codec.METHOD_NOT_FOUND, "unknown method")
            opened = envelope.opened(params)
            self.version = MODERN_VERSION
            return opened
        if method in envelope.MODERN_ONLY:
            raise BadEnvelope(codec.METHOD_NOT_FOUND, "unknown method")
        if method == INITIALIZE:
            self._handshake(params)
        elif not self.version:
            raise BadEnvelope(codec.INVALID_REQUEST, "initialize must come first")
        elif enveloped:
            raise BadEnvelope(codec.INVALID_REQUEST, "this connection began with initialize")
        return params, ""

    def _handshake(self, params: dict[str, Any]) -> None:
        if self.version:
            raise BadEnvelope(codec.INVALID_REQUEST, "initialize was sent before")
        version = params.get("protocolVersion")
        if not isinstance(version, str):
            raise BadEnvelope(codec.INVALID_PARAMS, "protocolVersion must be a string")
        self.version, self.client = version if version in VERSIONS else NEWEST_VERSION, params

    def _begin(self, request: codec.Request, params: dict[str, Any], size: int, level: str) -> Start:
        self._keys += 1
        self._ids[request.id] = self._keys
        self._open[self._keys] = _Open(request.id, request.method, size, _progress_token(params), level)
        self._bytes += size
        return Start(self._keys, request.method, params)

    def _close(self, key: int) -> _Open | None:
        request = self._open.pop(key, None)
        self._filters.pop(key, None)
        if request is not None:
            del self._ids[request.id]
            self._bytes -= request.size
        return request

    def _notification(self, notification: codec.Notification) -> Command | None:
        if notification.method == "notifications/cancelled":
            return self._cancelled(notification.params)
        if notification.method == "notifications/initialized" and self.version and not self.initialized:
            self.initialized = True
            return Initialized()
        return None

    def _cancelled(self, raw: bytes | None) -> Cancel | None:
        try:
            params = codec.decode(raw or b"{}")
        except codec.InvalidMessage:
            return None
        identifier = codec.as_id(params.get("requestId")) if isinstance(params, dict) else None
        if identifier is None or (key := self._ids.get(identifier)) is None:
            return None
        if self._open[key].method == INITIALIZE:
            return None
        self._close(key)
        return Cancel(key)

    def _response(self, response: codec.Response) -> Answered | None:
        if not isinstance(response.id, int) or response.id not in self._questions:
            return None
        self._questions.discard(response.id)
        return Answered(response.id, response.result, response.error)


def _progress_token(params: Mapping[str, Any]) -> codec.Id | None:
    meta = params.get("_meta")
    return codec.as_id(meta.get("progressToken")) if isinstance(meta, dict) else None


def _member(params: bytes | None, name: str) -> str:
    """:returns: a member of a notification's raw parameters; empty if it is no string."""
    try:
        value = codec.decode(params or b"{}")
    except codec.InvalidMessage:
        return ""
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, str) else ""


def _refuse(identifier: codec.Id | None, code: int, message: str) -> SendLine:
    return SendLine(codec.error(identifier, code, message))
