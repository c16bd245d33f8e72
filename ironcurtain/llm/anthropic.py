"""
Anthropic's Messages API on the wire: what is sent, and what its refusals mean.

The stream of an answer is put together by :mod:`ironcurtain.llm.anthropic_stream`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ironcurtain.llm.anthropic_stream import ANTHROPIC, AnthropicReply
from ironcurtain.llm.failures import CONTEXT_FULL, ErrorBody, plain
from ironcurtain.llm.model import (
    Block,
    ErrorKind,
    Message,
    ModelError,
    ModelRequest,
    ProviderBlock,
    TextBlock,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from ironcurtain.llm.retry import worth_retrying

VERSION: Final = "2023-06-01"
"""Value of the ``anthropic-version`` header, the only one there has been."""

_CACHE: Final = {"type": "ephemeral"}
_KINDS: Final[dict[int, ErrorKind]] = {
    401: "authentication",
    402: "authentication",
    403: "authentication",
    413: "context-overflow",
    429: "rate-limited",
}
_OVERFLOW: Final = ("prompt is too long", "exceed context limit", "exceeds the context window")


class AnthropicDialect:
    """How :class:`~ironcurtain.llm.http_provider.HttpProvider` speaks to Anthropic."""

    name = ANTHROPIC
    default_url = "https://api.anthropic.com"
    default_model = "claude-opus-5-5"

    def path(self, request: ModelRequest) -> str:
        """:returns: the path of the endpoint, below the base URL."""
        return "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """:returns: the headers that only this provider wants; they hold the key."""
        return {"x-api-key": key, "anthropic-version": VERSION}

    def body(self, request: ModelRequest) -> bytes:
        """
        Write a request.

        Three cache marks are set (four are allowed): after the tools, after the system prompt and at the end, so that
        the next turn reads from the cache what this one wrote. Blank text is left out, since the API refuses it, and
        so are blocks of other providers; neighbours of the same role are joined.
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
        """:returns: what puts one answer together."""
        return AnthropicReply()

    def failure(self, status: int, body: bytes) -> ModelError:
        """
        Say what a response other than 200 means.

        :param body: of the response, as much as was read; anything at all.
        """
        type_, message = _error_of(body)
        detail = f"{message} ({type_}, HTTP {status})" if type_ else f"{message} (HTTP {status})"
        if status == 413 or (status == 400 and any(phrase in message for phrase in _OVERFLOW)):
            return ModelError("context-overflow", CONTEXT_FULL.format(detail=detail))
        if worth_retrying(status):
            return ModelError(_KINDS.get(status, "overloaded"), f"Anthropic: {detail}", retryable=True)
        return ModelError(_KINDS.get(status, "invalid-request"), f"Anthropic: {detail}")


def _error_of(body: bytes) -> tuple[str, str]:
    try:
        error = msgspec.json.decode(body, type=ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", plain(body.decode("utf-8", "replace")) or "no explanation"
    return plain(error.type), plain(error.message) or "no explanation"


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for message in messages:
        content = [encoded for block in message.content if (encoded := _block(block)) is not None]
        if content and joined and joined[-1]["role"] == message.role:
            joined[-1]["content"] += content
        elif content:
            joined.append({"role": message.role, "content": content})
    if joined and joined[-1]["content"][-1]["type"] in ("text", "tool_result", "tool_use"):
        joined[-1]["content"][-1]["cache_control"] = _CACHE
    return joined


def _block(block: Block) -> dict[str, Any] | None:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text} if text.strip() else None
        case ToolUse(id, name, input):
            return {"type": "tool_use", "id": id, "name": name, "input": input}
        case ToolResult(id, content, is_error):
            return {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
        case ProviderBlock(provider, data):
            return dict(data) if provider == ANTHROPIC else None
