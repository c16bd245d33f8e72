"""The results of tool calls as values for programs."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from ironcurtain.codemode.model import ToolReply
from ironcurtain.errors import UsageError
from ironcurtain.llm.model import ImageBlock
from ironcurtain.llm.pictures import SIZE_LIMIT, image_block

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
    parts, the value is a list of strings and parts. A picture is a part of its own, also beside structured content; it
    is the value if there is nothing else. Sound is only described.

    :param raw: a ``CallToolResult`` object as JSON.
    """
    try:
        result = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ToolReply(None, "the tool's result is not JSON, or is nested too deeply")
    if not isinstance(result, dict):
        return ToolReply(None, "the tool's result is not an object")
    found = result.get("content")
    parts = [_part(part) for part in found] if isinstance(found, list) else []
    if not result.get("isError"):
        return ToolReply(_value(result.get("structuredContent"), parts))
    meta = result.get("_meta")
    denied = isinstance(meta, dict) and meta.get("ironcurtain/code") in DENIED_CODES
    said = "\n".join(part for part in parts if isinstance(part, str))
    return ToolReply(None, said or "the tool failed without a message", denied)


def _value(structured: Any, parts: list[Any]) -> Any:
    pictures = [part for part in parts if isinstance(part, ImageBlock)]
    if isinstance(structured, dict):
        is_wrapped = len(structured) == 1 and next(iter(structured)) in _WRAPPERS
        value = next(iter(structured.values())) if is_wrapped else structured
        return [value, *pictures] if pictures else value
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts)
    return parts[0] if pictures and len(parts) == 1 else parts


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    kind, data = part.get("type"), part.get("data")
    if kind == "text" and isinstance(part.get("text"), str):
        return part["text"]
    if kind == "resource" and isinstance(held := part.get("resource"), dict) and isinstance(held.get("blob"), str):
        kind, data = str(held.get("mimeType", "")).casefold().partition("/")[0], held["blob"]
        if kind not in ("image", "audio") and isinstance(picture := _picture(data), ImageBlock):
            return picture  # whatever the server says of it
    if kind == "image" and isinstance(data, str):
        return _picture(data)
    if kind == "audio" and isinstance(data, str):
        return f"[sound of {len(data) * 3 // 4} bytes, which is not passed on]"
    return part


def _picture(data: str) -> ImageBlock | str:
    if len(data) > 2 * SIZE_LIMIT:
        return f"[a picture of {len(data) * 3 // 4} bytes, which is too large to be shown]"
    try:
        return image_block(base64.b64decode(data, validate=True))
    except ValueError:
        return "[a picture that is not in base64]"
    except UsageError as e:
        return f"[{e}]"
