"""The rules of Anthropic's Messages API for requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from tests.model_stub.dialect import Invalid

SIZE_LIMIT = 32 * 1024 * 1024
"""Most bytes of a request."""

_TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_REQUIRED = (("model", str), ("max_tokens", int), ("messages", list))
_OPTIONAL = frozenset(
    (
        *("stream", "system", "tools", "tool_choice", "metadata", "stop_sequences", "temperature", "top_p", "top_k"),
        *("thinking", "output_config", "service_tier", "context_management", "speed", "container", "mcp_servers"),
    )
)
_BETA = {"diagnostics": "cache-diagnosis", "fallbacks": "server-side-fallback"}
"""Parameters that need a beta of the header ``anthropic-beta``, by the beginning of its name."""

_SYSTEM_MESSAGES = "mid-conversation-system"
"""The beta in which messages may have the role system, anywhere but at the start."""

_BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def check_body(body: bytes, betas: Iterable[str] = ()) -> dict[str, Any]:
    """
    :param betas: that the request asks for in a header.
    :returns: the request.
    :raises Invalid: it breaks a rule of the API.
    """
    if len(body) > SIZE_LIMIT:
        raise Invalid("Request exceeds the maximum size", 413)
    try:
        request = json.loads(body)
    except ValueError as e:
        raise Invalid(f"The request body is not valid JSON: {e}") from None
    if not isinstance(request, dict):
        raise Invalid("Input should be a valid dictionary")
    for name, kind in _REQUIRED:
        if name not in request:
            raise Invalid(f"{name}: Field required")
        if not isinstance(request[name], kind) or isinstance(request[name], bool):
            raise Invalid(f"{name}: Input should be a valid {kind.__name__}")
    allowed = {name for name, beta in _BETA.items() if _asks_for(betas, beta)}
    if unknown := set(request) - _OPTIONAL - allowed - {name for name, _ in _REQUIRED}:
        raise Invalid(f"{min(unknown)}: Extra inputs are not permitted")
    if request["max_tokens"] < 1:
        raise Invalid("max_tokens: Input should be greater than or equal to 1")
    _check_system(request.get("system", []))
    _check_tools(request.get("tools", []))
    _check_messages(_without_system(request["messages"]) if _asks_for(betas, _SYSTEM_MESSAGES) else request["messages"])
    marks = json.dumps(request).count('"cache_control"')
    if marks > 4:
        raise Invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    return request


def _asks_for(betas: Iterable[str], beginning: str) -> bool:
    return any(beta.startswith(beginning) for beta in betas)


def _without_system(messages: list[Any]) -> list[Any]:
    for index, message in enumerate(messages):
        if message.get("role") == "system":
            _check_system(message.get("content"))
            if not index:
                raise Invalid("messages.0.role: the first message must have the role 'user'")
    return [message for message in messages if message.get("role") != "system"]


def _check_system(system: Any) -> None:
    if isinstance(system, str):
        return
    for index, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            raise Invalid(f"system.{index}: Input should be a text block")
        _check_text(f"system.{index}", block)


def _check_tools(tools: Any) -> None:
    for index, tool in enumerate(tools):
        if not _TOOL_NAME.match(tool.get("name", "")):
            raise Invalid(f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool.get("type", "custom") == "custom" and tool.get("input_schema", {}).get("type") != "object":
            raise Invalid(f"tools.{index}.custom.input_schema.type: Field required")


def _check_messages(messages: list[Any]) -> None:
    if not messages:
        raise Invalid("messages: at least one message is required")
    asked: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in _BLOCKS:
            raise Invalid(f"messages.{index}.role: Input should be 'user' or 'assistant'")
        if role != ("user", "assistant")[index % 2]:
            raise Invalid("messages: roles must alternate between 'user' and 'assistant', starting with 'user'")
        asked = _check_message(f"messages.{index}", role, message.get("content"), asked, f"messages.{index - 1}")
    if messages[-1]["role"] == "assistant":
        raise Invalid("This model does not support assistant message prefill. It must end with a user message.")


def _check_message(place: str, role: str, content: Any, asked: list[str], before: str) -> list[str]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Invalid(f"{place}.content: Field required")
    if not content:
        raise Invalid(f"{place}: all messages must have non-empty content")
    used: list[str] = []
    answered: list[str] = []
    for index, block in enumerate(content):
        _check_block(f"{place}.content.{index}", role, block)
        if block["type"] == "tool_use":
            used.append(block["id"])
        elif block["type"] == "tool_result":
            _check_result(f"{place}.content.{index}", block, asked, index == len(answered))
            answered.append(block["tool_use_id"])
    if len(set(used)) != len(used):
        raise Invalid(f"{place}: `tool_use` ids must be unique")
    if missing := ", ".join(id for id in asked if id not in answered):
        raise Invalid(
            f"{before}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    return used


def _check_result(place: str, block: dict[str, Any], asked: list[str], leads: bool) -> None:
    if (id := block["tool_use_id"]) not in asked:
        raise Invalid(
            f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    if not leads:
        raise Invalid(f"{place}: `tool_result` blocks must come first in the content")


def _check_block(place: str, role: str, block: Any) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in _BLOCKS[role]:
        tags = ", ".join(f"'{tag}'" for tag in sorted(_BLOCKS[role]))
        raise Invalid(f"{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}")
    if kind == "text":
        _check_text(place, block)
    if kind == "tool_use" and not (isinstance(block.get("input"), dict) and block.get("id") and block.get("name")):
        raise Invalid(f"{place}.tool_use: id, name and input are required")
    if kind == "tool_result" and not isinstance(block.get("tool_use_id"), str):
        raise Invalid(f"{place}.tool_result.tool_use_id: Field required")
    if kind == "thinking" and not block.get("signature"):
        raise Invalid(f"{place}.thinking.signature: Field required")
    if "thinking" in str(kind) and "cache_control" in block:
        raise Invalid(f"{place}.cache_control: Extra inputs are not permitted")


def _check_text(place: str, block: dict[str, Any]) -> None:
    if not isinstance(block.get("text"), str):
        raise Invalid(f"{place}.text: Field required")
    if not block["text"].strip():
        raise Invalid(f"{place}: text content blocks must contain non-whitespace text")
