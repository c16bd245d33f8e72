"""Anthropic's Messages API: requests, the stream of events of an answer, and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.dialect import CONTENT_LIMIT, GrowingReply, mentions, response_error
from ironcurtain.llm.model import (
    Block,
    ChatMessage,
    ErrorKind,
    ImageBlock,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolSpec,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.pictures import base64_of

ANTHROPIC: Final = "anthropic"
"""Name of the provider."""

VERSION: Final = "2023-06-01"
"""Value of the ``anthropic-version`` header, the only version so far."""

_CACHE: Final = {"type": "ephemeral"}
_OVERFLOW: Final = ("prompt is too long", "exceed context limit", "exceeds the context window")


class _ErrorWords(msgspec.Struct):
    type: str = ""
    message: str = ""


class _ErrorBody(msgspec.Struct):
    error: _ErrorWords = msgspec.field(default_factory=_ErrorWords)


class AnthropicDialect:
    """How :class:`~ironcurtain.llm.http_provider.HttpModelClient` uses Anthropic's API."""

    name = ANTHROPIC
    models = re.compile("claude")
    key_header = "x-api-key"
    headers: Mapping[str, str] = {"anthropic-version": VERSION}
    default_url = "https://api.anthropic.com"
    default_model = "claude-opus-5-5"

    def path(self, request: ModelRequest) -> str:
        """:returns: the path of the endpoint, below the base URL."""
        return "/v1/messages"

    def body(self, request: ModelRequest) -> bytes:
        """
        Build a request.

        Three cache marks are set (four are allowed): after the tools, after the system prompt and at the end, so that
        the next turn reads from the cache what this one wrote. Blank text is left out, since the API refuses it, and so
        are blocks of other providers; adjacent messages of the same role are joined.
        """
        body: dict[str, Any] = {"model": request.model, "max_tokens": request.max_tokens, "stream": True}
        if request.system.strip():
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
            body["tools"][-1]["cache_control"] = _CACHE
        body["messages"] = _messages(request.messages)
        return msgspec.json.encode(body)

    def reply(self) -> AnthropicReply:
        """:returns: a new answer in progress."""
        return AnthropicReply()

    def failure(self, status: int, body: bytes) -> ModelError:
        """
        Explain a response other than 200.

        :param body: the response's body, as far as it was read; can be anything.
        """
        type_, message = _error_of(body)
        return response_error("Anthropic", status, type_, message, full=status == 400 and mentions(message, _OVERFLOW))


def _error_of(body: bytes) -> tuple[str, str]:
    try:
        error = msgspec.json.decode(body, type=_ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", body.decode("utf-8", "replace")
    return error.type, error.message


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _messages(messages: tuple[ChatMessage, ...]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for message in messages:
        content = [encoded for block in message.content if (encoded := _block(block)) is not None]
        content += [_image(image) for block in message.content for image in _apart(block)]
        if content and joined and joined[-1]["role"] == message.role:
            joined[-1]["content"] += content
        elif content:
            joined.append({"role": message.role, "content": content})
    if joined and joined[-1]["content"][-1]["type"] in ("text", "image", "tool_result", "tool_use"):
        joined[-1]["content"][-1]["cache_control"] = _CACHE
    return joined


def _block(block: Block) -> dict[str, Any] | None:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text} if text.strip() else None
        case ToolUse(id, name, input):
            return {"type": "tool_use", "id": id, "name": name, "input": input}
        case ToolResult(id, content, is_error, images):
            parts = [{"type": "text", "text": content}] if content.strip() else []
            shown = [*parts, *map(_image, images)] if images and not is_error else content
            return {"type": "tool_result", "tool_use_id": id, "content": shown, "is_error": is_error}
        case ProviderBlock(provider, data):
            return dict(data) if provider == ANTHROPIC else None


def _apart(block: Block) -> tuple[ImageBlock, ...]:
    """:returns: the pictures of a result that may not stand in it: the API takes only text for an error."""
    return block.images if isinstance(block, ToolResult) and block.is_error else ()


def _image(image: ImageBlock) -> dict[str, Any]:
    source = {"type": "base64", "media_type": image.media_type, "data": base64_of(image)}
    return {"type": "image", "source": source}


_PASSING: Final[dict[str, ErrorKind]] = {
    "overloaded_error": "overloaded",
    "api_error": "overloaded",
    "timeout_error": "overloaded",
    "rate_limit_error": "rate-limited",
}
_FINAL: Final[dict[str, ErrorKind]] = {
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "billing_error": "authentication",
    "request_too_large": "context-overflow",
}
_APPENDED: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Start(msgspec.Struct):
    model: str = ""
    usage: _Usage | None = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    message: _Start | None = None
    content_block: dict[str, Any] | None = None
    delta: dict[str, Any] | None = None
    usage: _Usage | None = None
    error: _ErrorWords = msgspec.field(default_factory=_ErrorWords)


class _Growing(msgspec.Struct):
    """One content block; its text, thinking, signature and input arrive in pieces."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def add(self, name: str, piece: str) -> None:
        self.pieces.setdefault(name, []).append(piece)

    def whole(self, name: str) -> str:
        return str(self.start.get(name, "")) + "".join(self.pieces.get(name, ()))


class _Type(msgspec.Struct):
    type: str = ""


_KNOWN: Final = frozenset(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    )
)
_types = msgspec.json.Decoder(_Type)
_events = msgspec.json.Decoder(_Event)


class AnthropicReply(GrowingReply):
    """
    One answer in progress; it is complete with ``message_stop``.

    Unknown kinds of events, blocks and deltas are ignored, as the API's versioning rules require.
    """

    vendor = "Anthropic"

    def __init__(self, limit: int = CONTENT_LIMIT) -> None:
        super().__init__(limit)
        self._model = ""
        self._stop_reason = ""
        self._blocks: dict[int, _Growing] = {}

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        """
        Process one event of the stream.

        :returns: the resulting events.
        :raises ModelError: an error event, or an event that violates the format or the size limit.
        """
        try:
            if _types.decode(event.data).type not in _KNOWN:
                return []
            parsed = _events.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.unreadable("an event is not as documented") from None
        match parsed.type:
            case "message_start" if parsed.message is not None:
                self._model = parsed.message.model
                return self._counted(parsed.message.usage)
            case "content_block_start" if parsed.content_block is not None:
                return self._started(parsed.index, parsed.content_block)
            case "content_block_delta" if parsed.delta is not None:
                return self._grown(parsed.index, parsed.delta)
            case "content_block_stop":
                return self._stopped(parsed.index)
            case "message_delta":
                self._stop_reason = str((parsed.delta or {}).get("stop_reason") or self._stop_reason)
                return self._counted(parsed.usage)
            case "message_stop":
                self.reply = ModelReply(self._content(), self._stop_reason, self.usage, self._model)
            case "error":
                raise self._stream_error(parsed.error)
        return []

    def _counted(self, usage: _Usage | None) -> list[ModelEvent]:
        if usage is None:
            return []
        # Numbers in message_delta are totals, not increments, and unchanged ones may be missing.
        before = self.usage
        total = TokenUsage(
            _updated(usage.input_tokens, before.input_tokens),
            _updated(usage.output_tokens, before.output_tokens),
            _updated(usage.cache_read_input_tokens, before.cache_read_tokens),
            _updated(usage.cache_creation_input_tokens, before.cache_write_tokens),
        )
        return self.count(total)

    def _started(self, index: int, start: dict[str, Any]) -> list[ModelEvent]:
        self._blocks[index] = _Growing(start)
        if start.get("type") == "tool_use":
            self.shown = True
            return [ToolStarted(str(start.get("name", "")))]
        return self.show(str(start.get("text", ""))) if start.get("type") == "text" else []

    def _grown(self, index: int, delta: dict[str, Any]) -> list[ModelEvent]:
        block = self._blocks.get(index)
        if block is None:
            raise self.unreadable(f"a piece of block {index} came before the block")
        kind = str(delta.get("type", ""))
        name = "partial_json" if kind == "input_json_delta" else _APPENDED.get(kind)
        if name is None:
            return []
        piece = delta.get(name)
        if not isinstance(piece, str):
            raise self.unreadable(f"a {kind} without {name}")
        self.grow(piece)
        block.add(name, piece)
        return self.show(piece) if name == "text" else []

    def _stopped(self, index: int) -> list[ModelEvent]:
        block = self._blocks.get(index)
        if block is None or block.start.get("type") != "tool_use":
            return []
        try:
            use = self._tool_use(block)
        except ModelError:
            return []  # whether the answer was cut in it is known at its end
        return [ToolAsked(use)] if use is not None else []

    def _content(self) -> tuple[Block, ...]:
        blocks = (self._finished(self._blocks[index]) for index in sorted(self._blocks))
        return tuple(block for block in blocks if block is not None)

    def _finished(self, block: _Growing) -> Block | None:
        match block.start.get("type"):
            case "text":
                text = block.whole("text")
                return TextBlock(text) if text else None
            case "tool_use":
                return self._tool_use(block)
            case "thinking":
                grown = {name: block.whole(name) for name in ("thinking", "signature")}
                return ProviderBlock(ANTHROPIC, {**block.start, **grown})
            case "redacted_thinking":
                return ProviderBlock(ANTHROPIC, block.start)
        return None

    def _tool_use(self, block: _Growing) -> ToolUse | None:
        written = block.whole("partial_json")
        try:
            input = msgspec.json.decode(written, type=dict[str, Any]) if written else block.start.get("input", {})
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if self._stop_reason not in ("", "end_turn", "stop_sequence", "tool_use"):
                return None  # the answer was cut within the block, so it cannot be run
            raise self.unreadable("the input of a tool is not JSON") from None
        id, name = block.start.get("id"), block.start.get("name")
        if not (isinstance(id, str) and isinstance(name, str) and isinstance(input, dict)):
            raise self.unreadable("a tool_use block lacks its id, name or input")
        return ToolUse(id, name, input)

    def _stream_error(self, error: _ErrorWords) -> ModelError:
        passing = _PASSING.get(error.type)
        kind = passing or _FINAL.get(error.type, "invalid-request")
        return self.broken_off(error.type, error.message, kind, passing=passing is not None)


def _updated(now: int | None, before: int) -> int:
    return before if now is None else now
