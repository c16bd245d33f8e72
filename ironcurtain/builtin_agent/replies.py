"""The results of tool calls as values for programs."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.codemode.model import ToolReply

DENIED_CODES = frozenset(
    {
        "denied-by-rule",
        "denied-by-person",
        "expired",
        "withdrawn",
        "nobody-to-ask",
        "too-many-questions",
        "changed-meanwhile",
    }
)
"""Values of ``_meta["ironcurtain/code"]`` that mean that the call was not permitted."""

_WRAPPERS = ("content", "result")


def reply(raw: bytes) -> ToolReply:
    """
    Extract the value of a result.

    Structured content is preferred. If it only wraps one value (``{"content": ...}`` of the reference servers,
    ``{"result": ...}`` of the Python SDK), that value is used. Otherwise texts are joined to one string; with other
    parts, the value is a list of strings and parts.

    :param raw: a ``CallToolResult`` object as JSON.
    """
    try:
        result = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ToolReply(None, "the tool's result is not JSON, or is nested too deeply")
    if not isinstance(result, dict):
        return ToolReply(None, "the tool's result is not an object")
    value = _value(result)
    if not result.get("isError"):
        return ToolReply(value)
    meta = result.get("_meta")
    denied = isinstance(meta, dict) and meta.get("ironcurtain/code") in DENIED_CODES
    return ToolReply(None, value if isinstance(value, str) and value else "the tool failed without a message", denied)


def _value(result: dict[str, Any]) -> Any:
    structured = result.get("structuredContent")
    if isinstance(structured, dict) and not result.get("isError"):
        if len(structured) == 1 and (name := next(iter(structured))) in _WRAPPERS:
            return structured[name]
        return structured
    parts = result.get("content")
    values = [_part(part) for part in parts] if isinstance(parts, list) else []
    return "\n".join(values) if all(isinstance(value, str) for value in values) else values


def _part(part: Any) -> Any:
    is_text = isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    return part["text"] if is_text else part
