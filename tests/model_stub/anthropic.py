"""Anthropic's Messages API as a server sees it: the rules for requests, and the events of an answer. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.model_stub.replies import Answer, Content, Raw, Text, Thinking, Tool

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The API's own words for statuses."""

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
_COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_BLOCKS = {
    "user": {"text", "image", "document", "tool_result", "search_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


class Invalid(Exception):
    """The request is refused with this status and message."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def error_body(status: int, message: str, type: str = "", request_id: str = "req_stub") -> bytes:
    """:returns: an error in the API's shape."""
    error = {"type": type or ERROR_TYPES.get(status, "api_error"), "message": message or "Error"}
    return json.dumps({"type": "error", "error": error, "request_id": request_id}).encode()


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    """
    :param headers: with names in lower case.
    :raises Invalid: key, version or content type are missing or wrong.
    """
    if headers.get("x-api-key") not in keys:
        known = "invalid x-api-key" if "x-api-key" in headers else "x-api-key header is required"
        raise Invalid(known, 401)
    if headers.get("anthropic-version") not in ("2023-06-01", "2023-01-01"):
        raise Invalid("anthropic-version: header is required")
    if not headers.get("content-type", "").startswith("application/json"):
        raise Invalid("content-type must be application/json")


def check_body(body: bytes) -> dict[str, Any]:
    """
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
    if unknown := set(request) - _OPTIONAL - {name for name, _ in _REQUIRED}:
        raise Invalid(f"{min(unknown)}: Extra inputs are not permitted")
    if request["max_tokens"] < 1:
        raise Invalid("max_tokens: Input should be greater than or equal to 1")
    _check_system(request.get("system", []))
    _check_tools(request.get("tools", []))
    _check_messages(request["messages"])
    marks = json.dumps(request).count('"cache_control"')
    if marks > 4:
        raise Invalid(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
    return request


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
        if tool.get("input_schema", {}).get("type") != "object":
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


def events(answer: Answer, model: str, number: int) -> list[bytes]:
    """:returns: the Server-Sent Events of a whole answer."""
    usage = {name: 0 for name in _COUNTED} | answer.usage
    start = {**_message(model, number), "usage": {**usage, "output_tokens": 1}}
    made = [_event("message_start", message=start)]
    made += [_event("ping")] * answer.pings
    for index, content in enumerate(answer.content):
        made += _block_events(index, content, number)
    delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    made.append(_event("message_delta", delta=delta, usage={"output_tokens": usage["output_tokens"]}))
    return [*made, _event("message_stop")]


def error_event(answer: Answer) -> bytes:
    """:returns: the event that ends an answer with an error."""
    type_, message = answer.error
    return _event("error", error={"type": type_, "message": message})


def whole(answer: Answer, model: str, number: int) -> bytes:
    """:returns: the answer as one JSON message, for clients that do not ask for a stream."""
    content = [_finished(index, block, number) for index, block in enumerate(answer.content)]
    message = {**_message(model, number), "content": content, "stop_reason": _stop_reason(answer)}
    return json.dumps({**message, "usage": answer.usage}).encode()


def _message(model: str, number: int) -> dict[str, Any]:
    blank: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
    return {"id": f"msg_{number:024d}", "type": "message", "role": "assistant", "model": model, **blank}


def _stop_reason(answer: Answer) -> str:
    uses_tool = any(isinstance(content, Tool) for content in answer.content)
    return answer.stop_reason or ("tool_use" if uses_tool else "end_turn")


def _event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()


def _finished(index: int, content: Content, number: int) -> dict[str, Any]:
    match content:
        case Text(chunks):
            return {"type": "text", "text": "".join(chunks)}
        case Thinking(chunks, signature):
            return {"type": "thinking", "thinking": "".join(chunks), "signature": signature}
        case Tool(name, input, id):
            return {"type": "tool_use", "id": id or f"toolu_{number:012d}{index:012d}", "name": name, "input": input}
        case Raw(block):
            return block


def _block_events(index: int, content: Content, number: int) -> Iterator[bytes]:
    start, deltas = _finished(index, content, number), []
    match content:
        case Text(chunks):
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": chunk} for chunk in chunks]
        case Thinking(chunks, signature):
            start |= {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": chunk} for chunk in chunks]
            deltas.append({"type": "signature_delta", "signature": signature})
        case Tool(_, input, _, pieces):
            start["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _cut(json.dumps(input), pieces)]
    yield _event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // pieces))
    return ["", *(text[start : start + size] for start in range(0, len(text), size))]
