"""OpenAI's Chat Completions API, as vLLM, llama.cpp, Ollama and many other servers offer it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
    TextBlock,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.openai import OVERFLOW, SPENT, error_of, result_text, separated
from ironcurtain.llm.pictures import FROM_TOOLS, data_url

OPENAI_CHAT: Final = "openai-chat"
"""Name of the provider."""

VENDOR: Final = "the server"
"""Its name for people."""

_FULL: Final = (*OVERFLOW, "exceed_context_size", "available context size", "context length", "exceed context window")
"""What errors of these servers say, in lower case, if a conversation is too long."""

_DONE: Final = "[DONE]"


class OpenAiChatDialect:
    """
    How :class:`~ironcurtain.llm.http_provider.HttpModelClient` uses servers with the Chat Completions API.

    It has no default address: the settings name one, which ends in ``/v1`` with most servers.
    """

    name = OPENAI_CHAT
    models = re.compile(r"(?!)")
    key_header = "authorization"
    headers: Mapping[str, str] = {}
    default_url = ""
    default_model = ""

    def path(self, request: ModelRequest) -> str:
        """:returns: the path of the endpoint, below the base URL."""
        return "/v1/chat/completions"

    def body(self, request: ModelRequest) -> bytes:
        """Build a request. Servers with a cache use it by themselves. Blocks of other providers are left out."""
        system = [{"role": "system", "content": request.system}] if request.system.strip() else []
        body: dict[str, Any] = {
            "model": request.model,
            "messages": system + [sent for message in request.messages for sent in _messages(message)],
            "max_tokens": request.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
        return msgspec.json.encode(body)

    def reply(self) -> OpenAiChatReply:
        """:returns: a new answer in progress."""
        return OpenAiChatReply()

    def failure(self, status: int, body: bytes) -> ModelError:
        """Explain a response other than 200."""
        code, message = error_of(body)
        kind: ErrorKind | None = "rate-limited" if code in SPENT else None
        return response_error(VENDOR, status, code, message, full=mentions(f"{code} {message}", _FULL), kind=kind)


def _messages(message: ChatMessage) -> list[dict[str, Any]]:
    results = [
        {"role": "tool", "tool_call_id": block.id, "content": result_text(block)}
        for block in message.content
        if isinstance(block, ToolResult)
    ]
    texts = [block.text for block in message.content if isinstance(block, TextBlock) and block.text.strip()]
    calls = [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": msgspec.json.encode(block.input).decode()},
        }
        for block in message.content
        if isinstance(block, ToolUse)
    ]
    images = [image for block in message.content if isinstance(block, ToolResult) for image in block.images]
    if not texts and not calls and not images:
        return results
    said: dict[str, Any] = {"role": message.role, "content": _shown(images, texts) or None}
    return [*results, {**said, "tool_calls": calls} if calls else said]


def _shown(images: Sequence[ImageBlock], texts: Sequence[str]) -> str | list[dict[str, Any]]:
    """:returns: pictures of results, which this API takes from the user only, and what else there is to say."""
    said = "\n\n".join(texts)
    if not images:
        return said
    words = [FROM_TOOLS, *([said] if said else [])]
    parts = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]
    return [{"type": "text", "text": words[0]}, *parts, *({"type": "text", "text": each} for each in words[1:])]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _CallPiece(msgspec.Struct):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OpenAiChatUsage(msgspec.Struct):
    """Token counts of the Chat Completions API. Those of the prompt include what the cache read and wrote."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: OpenAiChatUsage | None = None
    error: Any = None


_STOP: Final = {
    "stop": "end_turn",
    "eos": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "max_tokens",
}
_WHOLE: Final = ("", *(word for word, stop in _STOP.items() if stop != "max_tokens"))
"""Reasons to stop after which every tool call is complete."""

_PASSING: Final = ("overloaded", "server_error", "internal", "rate_limit", "unavailable")
_chunks = msgspec.json.Decoder(_Chunk)


class _Call(msgspec.Struct):
    """A tool call whose arguments arrive in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = msgspec.field(default_factory=list)


class OpenAiChatReply(GrowingReply):
    """
    One answer in progress. It is complete with ``[DONE]``, or if the stream ends after a reason to stop: not every
    server sends both.
    """

    vendor = VENDOR

    def __init__(self, limit: int = CONTENT_LIMIT) -> None:
        super().__init__(limit)
        self._id = self._model = self._finish = ""
        self._refused = False
        """Whether the model wrote a refusal in place of an answer."""
        self._texts: list[str] = []
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        """
        Process one event of the stream.

        :returns: the resulting events.
        :raises ModelError: an error event, or an event that violates the format or the size limit.
        """
        if event.data.strip() == _DONE:
            return self._ended()
        try:
            chunk = _chunks.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.unreadable("an event is not as documented") from None
        if chunk.error is not None:
            raise self._failed(*error_of(event.data))
        self._id, self._model = chunk.id or self._id, chunk.model or self._model
        told: list[ModelEvent] = []
        for choice in (chunk.choices or [])[:1]:
            told += self._grown(choice.delta) if choice.delta is not None else []
            if choice.finish_reason and self._finish in ("", *_STOP):  # a filter is not undone by a later event
                self._finish = choice.finish_reason
        if (usage := chunk.usage) is not None:
            details = usage.prompt_tokens_details or _PromptDetails()
            told += self.count(
                separated(
                    usage.prompt_tokens, usage.completion_tokens, details.cached_tokens, details.cache_write_tokens
                )
            )
        return told

    def close(self) -> list[ModelEvent]:
        """The stream has ended: the answer is complete if there was a reason to stop."""
        return self._ended() if self._finish and self.reply is None else []

    def _grown(self, delta: _Delta) -> list[ModelEvent]:
        told: list[ModelEvent] = []
        self._refused = self._refused or bool(delta.refusal)
        for piece in (delta.content, delta.refusal):
            if piece:
                self.grow(piece)
                self._texts.append(piece)
                told += self.show(piece)
        for part in delta.tool_calls or ():
            told += self._call_grown(part)
        return told

    def _call_grown(self, part: _CallPiece) -> list[ModelEvent]:
        function, told = part.function or _Function(), list[ModelEvent]()
        call = self._open.get(part.index)
        # Some servers repeat the id and the name in each piece, and some give all calls the same index.
        if call is None or (part.id and call.id and part.id != call.id):
            call = self._open[part.index] = _Call()
            self._calls.append(call)
            self.shown = True
            told.append(ToolStarted(function.name or ""))
        call.id, call.name = call.id or part.id or "", call.name or function.name or ""
        if function.arguments:
            self.grow(function.arguments)
            call.arguments.append(function.arguments)
        return told

    def _ended(self) -> list[ModelEvent]:
        uses: list[Block] = []
        for number, call in enumerate(self._calls):
            if not call.name:
                raise self.unreadable("a tool call lacks its name")
            try:
                id = call.id or f"{self._id}_{number}"
                uses.append(ToolUse(id, call.name, self.input_of("".join(call.arguments))))
            except ModelError:
                if self._finish in _WHOLE:
                    raise
        text = "".join(self._texts)
        stop = "refusal" if self._refused else _STOP.get(self._finish, self._finish)
        if (uses and stop == "end_turn") or not stop:
            stop = "tool_use" if uses else "end_turn"
        content = (*([TextBlock(text)] if text.strip() else []), *uses)
        self.reply = ModelReply(content, stop, self.usage, self._model)
        return [ToolAsked(use) for use in uses if isinstance(use, ToolUse)]

    def _failed(self, code: str, message: str) -> ModelError:
        if mentions(f"{code} {message}", _FULL):
            return self.broken_off(code, message, "context-overflow", passing=False)
        passing = mentions(f"{code} {message}", _PASSING)
        return self.broken_off(code, message, "overloaded" if passing else "invalid-request", passing=passing)
