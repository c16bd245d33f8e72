"""Put an answer of Anthropic's Messages API together from its stream of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.failures import ErrorWords, plain
from ironcurtain.llm.model import (
    Block,
    ErrorKind,
    ModelError,
    ModelEvent,
    ModelReply,
    ProviderBlock,
    TextBlock,
    TextDelta,
    ToolStarted,
    ToolUse,
    Usage,
    UsageSeen,
)

ANTHROPIC: Final = "anthropic"
"""Name of the provider."""

CONTENT_LIMIT: Final = 16 * 1024 * 1024
"""Most characters of one answer: 16 Mi (the longest answer allowed, 128,000 tokens, is below 1 Mi)."""

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
    error: ErrorWords = msgspec.field(default_factory=ErrorWords)


@dataclass(slots=True)
class _Growing:
    """One content block; its text, thinking, signature and input arrive in pieces."""

    start: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

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
        "message_delta",
        "message_stop",
        "error",
    )
)
_types = msgspec.json.Decoder(_Type)
_events = msgspec.json.Decoder(_Event)


class AnthropicReply:
    """
    One answer in the making.

    Kinds of events, blocks and deltas that are not known are passed over, as the API's versioning rules ask.

    :param limit: most characters of the answer.
    :ivar usage: tokens told so far.
    :ivar shown: whether text or the name of a tool has been given out, so that a second try would repeat it.
    :ivar reply: the whole answer, once ``message_stop`` has come.
    """

    def __init__(self, limit: int = CONTENT_LIMIT) -> None:
        self.usage = Usage()
        self.shown = False
        self.reply: ModelReply | None = None
        self._model = ""
        self._stop_reason = ""
        self._blocks: dict[int, _Growing] = {}
        self._size, self._limit = 0, limit

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        """
        Take one event of the stream.

        :returns: what there is to tell.
        :raises ModelError: an error event, or an event that breaks the format or the size limit.
        """
        try:
            if _types.decode(event.data).type not in _KNOWN:
                return []
            parsed = _events.decode(event.data)
        except (msgspec.DecodeError, RecursionError) as e:
            raise _unreadable(f"an event is not as documented: {e}") from None
        match parsed.type:
            case "message_start" if parsed.message is not None:
                self._model = parsed.message.model
                return self._count(parsed.message.usage)
            case "content_block_start" if parsed.content_block is not None:
                return self._started(parsed.index, parsed.content_block)
            case "content_block_delta" if parsed.delta is not None:
                return self._grown(parsed.index, parsed.delta)
            case "message_delta":
                self._stop_reason = str((parsed.delta or {}).get("stop_reason") or self._stop_reason)
                return self._count(parsed.usage)
            case "message_stop":
                self.reply = ModelReply(self._content(), self._stop_reason, self.usage, self._model)
            case "error":
                raise _stream_error(parsed.error)
        return []

    def _count(self, usage: _Usage | None) -> list[ModelEvent]:
        if usage is None:
            return []
        # Numbers in message_delta are totals, not additions, and only those that changed need be there.
        before = self.usage
        self.usage = Usage(
            _told(usage.input_tokens, before.input_tokens),
            _told(usage.output_tokens, before.output_tokens),
            _told(usage.cache_read_input_tokens, before.cache_read_tokens),
            _told(usage.cache_creation_input_tokens, before.cache_write_tokens),
        )
        return [UsageSeen(self.usage)]

    def _started(self, index: int, start: dict[str, Any]) -> list[ModelEvent]:
        self._blocks[index] = _Growing(start)
        if start.get("type") == "tool_use":
            self.shown = True
            return [ToolStarted(str(start.get("name", "")))]
        return self._text(str(start.get("text", ""))) if start.get("type") == "text" else []

    def _grown(self, index: int, delta: dict[str, Any]) -> list[ModelEvent]:
        block = self._blocks.get(index)
        if block is None:
            raise _unreadable(f"a piece of block {index} came before the block")
        kind = str(delta.get("type", ""))
        name = "partial_json" if kind == "input_json_delta" else _APPENDED.get(kind)
        if name is None:
            return []
        piece = delta.get(name)
        if not isinstance(piece, str):
            raise _unreadable(f"a {kind} without {name}")
        self._size += len(piece)
        if self._size > self._limit:
            raise _unreadable(f"the answer is longer than {self._limit} characters")
        block.add(name, piece)
        return self._text(piece) if name == "text" else []

    def _text(self, text: str) -> list[ModelEvent]:
        if not text:
            return []
        self.shown = True
        return [TextDelta(text)]

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
        except (msgspec.DecodeError, RecursionError):
            if self._stop_reason in ("max_tokens", "model_context_window_exceeded"):
                return None  # the answer was cut in the middle of it: there is nothing to run
            raise _unreadable("the input of a tool is not JSON") from None
        id, name = block.start.get("id"), block.start.get("name")
        if not (isinstance(id, str) and isinstance(name, str) and isinstance(input, dict)):
            raise _unreadable("a tool_use block lacks its id, name or input")
        return ToolUse(id, name, input)


def _told(now: int | None, before: int) -> int:
    return before if now is None else now


def _unreadable(detail: str) -> ModelError:
    return ModelError("network", f"Anthropic's answer could not be understood: {plain(detail)}", retryable=True)


def _stream_error(error: ErrorWords) -> ModelError:
    detail = f"Anthropic broke off its answer: {plain(error.message) or 'no explanation'} ({plain(error.type)})"
    passing = _PASSING.get(error.type)
    if passing is not None:
        return ModelError(passing, detail, retryable=True)
    return ModelError(_FINAL.get(error.type, "invalid-request"), detail)
