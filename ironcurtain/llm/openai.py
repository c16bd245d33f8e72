"""OpenAI's Responses API: requests, the stream of events of an answer, and errors."""

from __future__ import annotations

import hashlib
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
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.pictures import data_url

OPENAI: Final = "openai"
"""Name of the provider."""

VENDOR: Final = "OpenAI"
"""Its name for people."""

OVERFLOW: Final = ("context_length_exceeded", "exceeds the context window", "maximum context length")
"""What its errors say, in lower case, if a conversation is too long."""

SPENT: Final = ("insufficient_quota", "billing_hard_limit_reached")
"""Codes of errors that do not pass by waiting, although their status is 429."""

_WITHOUT_REASONING: Final = re.compile(r"(?:ft:)?(?:chatgpt|gpt-[34]|gpt-5[0-9.]*-chat)")
"""Models that refuse a request for encrypted reasoning."""

_REASONING: Final = ("id", "type", "summary", "encrypted_content")
"""The fields of reasoning that requests may have; answers have more."""


class OpenAiDialect:
    """How :class:`~ironcurtain.llm.http_provider.HttpModelClient` uses OpenAI's Responses API."""

    name = OPENAI
    models = re.compile(r"gpt|chatgpt|codex|o\d")
    key_header = "authorization"
    headers: Mapping[str, str] = {}
    default_url = "https://api.openai.com"
    default_model = "gpt-6.1-sol"

    def path(self, request: ModelRequest) -> str:
        """:returns: the path of the endpoint, below the base URL."""
        return "/v1/responses"

    def body(self, request: ModelRequest) -> bytes:
        """
        Build a request.

        The provider stores nothing of it, so that reasoning comes encrypted and is sent back. It reads the beginning of
        a request from its cache by itself; the cache key brings the requests of one conversation to the same cache.
        """
        body: dict[str, Any] = {
            "model": request.model,
            "input": [item for message in request.messages for item in _items(message)],
            "max_output_tokens": request.max_tokens,
            "stream": True,
            "store": False,
            "prompt_cache_key": _cache_key(request),
        }
        if request.system.strip():
            body["instructions"] = request.system
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in request.tools
            ]
        if not _WITHOUT_REASONING.match(request.model):
            body["include"] = ["reasoning.encrypted_content"]
        return msgspec.json.encode(body)

    def reply(self) -> OpenAiReply:
        """:returns: a new answer in progress."""
        return OpenAiReply()

    def failure(self, status: int, body: bytes) -> ModelError:
        """Explain a response other than 200."""
        code, message = error_of(body)
        kind: ErrorKind | None = "rate-limited" if code in SPENT else None
        return response_error(VENDOR, status, code, message, full=mentions(f"{code} {message}", OVERFLOW), kind=kind)


def _cache_key(request: ModelRequest) -> str:
    first = request.messages[0].content if request.messages else ()
    texts = (request.model, request.system, *(block.text for block in first if isinstance(block, TextBlock)))
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:32]


def _items(message: ChatMessage) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    # Reasoning belongs to what follows it; without that, it is refused.
    reasoning: list[dict[str, Any]] = []
    phase: dict[str, Any] = {}
    for block in message.content:
        if isinstance(block, ProviderBlock):
            if block.provider == OPENAI and "type" in block.data:
                reasoning.append(dict(block.data))
            elif block.provider == OPENAI:
                phase = dict(block.data)
        elif (item := _item(message.role, block)) is not None:
            items += [*reasoning, {**item, **phase} if item["type"] == "message" else item]
            reasoning, phase = [], {}
    return items


def _item(role: str, block: TextBlock | ToolUse | ToolResult) -> dict[str, Any] | None:
    match block:
        case TextBlock(text):
            return {"type": "message", "role": role, "content": text} if text.strip() else None
        case ToolUse(id, name, input):
            arguments = msgspec.json.encode(input).decode()
            return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
        case ToolResult(id, _, _, images):
            said = {"type": "input_text", "text": result_text(block)}
            shown = [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in images]
            output: str | list[dict[str, str]] = [said, *shown] if shown else result_text(block)
            return {"type": "function_call_output", "call_id": id, "output": output}


def result_text(result: ToolResult) -> str:
    """:returns: the text of a result for an API that has no field for errors."""
    return f"Error: {result.content}" if result.is_error else result.content


class _ErrorWords(msgspec.Struct):
    message: str | None = None
    code: str | int | None = None
    type: str | int | None = None


def error_of(body: bytes | str) -> tuple[str, str]:
    """
    :param body: an error of OpenAI, or of a server that imitates it; can be anything.
    :returns: its code, or else its type; and its message.
    """
    try:
        parsed = msgspec.json.decode(body)
        error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
        if isinstance(error, str):
            return "", error
        words = msgspec.convert(error, _ErrorWords)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    code = next((word for word in (words.code, words.type) if word and isinstance(word, str)), "")
    return code, words.message or ""


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OpenAiUsage(msgspec.Struct):
    """Token counts of the Responses API. Those of the prompt include what the cache read and wrote."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None


def separated(prompt: int | None, output: int | None, cached: int | None, written: int | None) -> TokenUsage:
    """:returns: the usage for a count of the prompt that includes what the cache read and wrote."""
    read, stored = cached or 0, written or 0
    return TokenUsage(max(0, (prompt or 0) - read - stored), output or 0, read, stored)


class _Incomplete(msgspec.Struct):
    reason: str = ""


class _Response(msgspec.Struct):
    model: str = ""
    output: list[dict[str, Any]] = []
    usage: OpenAiUsage | None = None
    incomplete_details: _Incomplete | None = None
    status: str | None = None
    error: _ErrorWords | None = None


class _Event(msgspec.Struct):
    type: str
    output_index: int = 0
    delta: str = ""
    item: dict[str, Any] | None = None
    response: _Response | None = None


class _Type(msgspec.Struct):
    type: str = ""


_TEXT: Final = ("response.output_text.delta", "response.refusal.delta")
_KNOWN: Final = frozenset(
    (
        *_TEXT,
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.completed",
        "response.incomplete",
        "response.failed",
    )
)
_STOP: Final = {"max_output_tokens": "max_tokens"}
_CODES: Final[dict[str, ErrorKind]] = {
    "rate_limit_exceeded": "rate-limited",
    "server_is_overloaded": "overloaded",
    "server_error": "overloaded",
    "slow_down": "overloaded",
}
_types = msgspec.json.Decoder(_Type)
_events = msgspec.json.Decoder(_Event)


class OpenAiReply(GrowingReply):
    """One answer in progress; it is complete with ``response.completed`` or ``response.incomplete``."""

    vendor = VENDOR

    def __init__(self, limit: int = CONTENT_LIMIT) -> None:
        super().__init__(limit)
        self._items: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, list[str]] = {}
        self._refused = False
        """Whether the model wrote a refusal in place of an answer."""

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        """
        Process one event of the stream.

        :returns: the resulting events.
        :raises ModelError: an error event, or an event that violates the format or the size limit.
        """
        try:
            kind = _types.decode(event.data).type
            if kind == "error":
                raise self._failed(*error_of(event.data))
            if kind not in _KNOWN:
                return []
            parsed = _events.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.unreadable("an event is not as documented") from None
        self._refused = self._refused or kind == "response.refusal.delta"
        if kind in _TEXT:
            self.grow(parsed.delta)
            self._texts.setdefault(parsed.output_index, []).append(parsed.delta)
            return self.show(parsed.delta)
        match kind:
            case "response.function_call_arguments.delta":
                self.grow(parsed.delta)
            case "response.output_item.added" if parsed.item is not None:
                return self._begun(parsed.item)
            case "response.output_item.done" if parsed.item is not None:
                return self._done(parsed.output_index, parsed.item)
            case "response.completed" | "response.incomplete" | "response.failed" if parsed.response is not None:
                return self._ended(kind, parsed.response)
        return []

    def _begun(self, item: dict[str, Any]) -> list[ModelEvent]:
        if item.get("type") != "function_call":
            return []
        self.shown = True
        return [ToolStarted(str(item.get("name", "")))]

    def _done(self, index: int, item: dict[str, Any]) -> list[ModelEvent]:
        self._items[index] = item
        if item.get("type") != "function_call" or item.get("status") == "incomplete":
            return []
        return [ToolAsked(self._tool_use(item))]

    def _ended(self, kind: str, response: _Response) -> list[ModelEvent]:
        told: list[ModelEvent] = []
        if (usage := response.usage) is not None:
            details = usage.input_tokens_details or _Details()
            told = self.count(
                separated(usage.input_tokens, usage.output_tokens, details.cached_tokens, details.cache_write_tokens)
            )
        if kind == "response.failed":
            error = response.error or _ErrorWords()
            raise self._failed(str(error.code or ""), error.message or "")
        content = self._content(response.output)
        stop = "tool_use" if any(isinstance(block, ToolUse) for block in content) else "end_turn"
        incomplete = response.incomplete_details or _Incomplete()
        if incomplete.reason or kind == "response.incomplete" or response.status not in (None, "completed"):
            stop = _STOP.get(incomplete.reason, incomplete.reason or response.status or "incomplete")
        parts = (part for item in self._items.values() for part in _parts(item))
        if self._refused or any(part.get("type") == "refusal" for part in parts):
            stop = "refusal"
        self.reply = ModelReply(content, stop, self.usage, response.model)
        return told

    def _content(self, output: list[dict[str, Any]]) -> tuple[Block, ...]:
        if not self._items:  # some gateways send items only at the end
            self._items = dict(enumerate(output))
        blocks: list[Block] = []
        for index in sorted({*self._items, *self._texts}):
            item = self._items.get(index)
            blocks += [TextBlock("".join(self._texts[index]))] if item is None else self._finished(item)
        return tuple(blocks)

    def _finished(self, item: dict[str, Any]) -> list[Block]:
        match item.get("type"):
            case "message":
                text = "".join(str(part.get("text") or part.get("refusal") or "") for part in _parts(item))
                phase = [ProviderBlock(OPENAI, {"phase": item["phase"]})] if item.get("phase") else []
                return [*phase, TextBlock(text)] if text else []
            case "function_call" if item.get("status") != "incomplete":
                return [self._tool_use(item)]
            case "reasoning" if item.get("encrypted_content"):
                return [ProviderBlock(OPENAI, {name: item[name] for name in _REASONING if name in item})]
        return []

    def _tool_use(self, item: dict[str, Any]) -> ToolUse:
        id, name, written = item.get("call_id"), item.get("name"), item.get("arguments", "")
        if not (isinstance(id, str) and isinstance(name, str) and isinstance(written, str)):
            raise self.unreadable("a function call lacks its call_id, name or arguments")
        return ToolUse(id, name, self.input_of(written))

    def _failed(self, code: str, message: str) -> ModelError:
        if mentions(f"{code} {message}", OVERFLOW):
            return self.broken_off(code, message, "context-overflow", passing=False)
        passing = _CODES.get(code)
        spent: ErrorKind = "rate-limited" if code in SPENT else "invalid-request"
        return self.broken_off(code, message, passing or spent, passing=passing is not None)


def _parts(item: dict[str, Any]) -> list[dict[str, Any]]:
    parts = item.get("content")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
