"""
Mend the results of servers.

Official clients refuse a whole result for one wrong part of it. Such a part is mended if its meaning is plain;
otherwise its JSON is given as text, so that nothing is lost. Other results are passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy import shapes

WRAPPER = "result"
"""The member that holds structured content that is not an object, as in the official Python SDK."""

Tell = Callable[[str], None]


def mended(method: str, raw: bytes, params: Mapping[str, Any]) -> tuple[bytes, list[str]]:
    """
    :param raw: JSON of a result.
    :param params: of the request.
    :returns: JSON of a result that clients accept, and sentences about what was wrong.
    :raises InvalidMessage: it is not an object.
    """
    if (kind := _KINDS.get(method)) is None:
        return raw, []
    decoder, mend = kind
    try:
        decoder.decode(raw)
    except msgspec.ValidationError as e:
        why = str(e)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        why = "not JSON"
    else:
        return raw, []
    result = codec.decode(raw)
    if not isinstance(result, dict):
        raise codec.InvalidMessage(codec.INTERNAL_ERROR, "the result is not an object")
    if "_meta" in result and not isinstance(result["_meta"], dict):
        del result["_meta"]
    mend(result, params)
    return codec.encode(result), [f"its result is wrong ({why}); what could not be mended is given as text"]


def _call(result: dict[str, Any], params: Mapping[str, Any]) -> None:
    structured = result.get("structuredContent")
    if "structuredContent" in result and not isinstance(structured, dict):
        del result["structuredContent"]
        if structured is not None:
            result["structuredContent"] = {WRAPPER: structured}
    if "content" not in result and "toolResult" in result:  # of the revisions before 2024-11-05
        result["content"] = result["toolResult"]
    result["content"] = _blocks(result.get("content"))
    if not result["content"] and structured is not None:
        result["content"] = [_text(structured)]
    if "isError" in result and not isinstance(failed := result["isError"], bool):
        result["isError"] = failed.lower() == "true" if isinstance(failed, str) else bool(failed)


def _read(result: dict[str, Any], params: Mapping[str, Any]) -> None:
    contents = _as_list(result.get("contents"))
    result["contents"] = [_contents(each, params.get("uri")) for each in contents]


def _prompt(result: dict[str, Any], params: Mapping[str, Any]) -> None:
    if "description" in result and not isinstance(result["description"], str):
        del result["description"]
    messages = _as_list(result.get("messages"))
    result["messages"] = [message for each in messages for message in _messages(each)]


def _complete(result: dict[str, Any], params: Mapping[str, Any]) -> None:
    completion = result.get("completion")
    known = dict(completion) if isinstance(completion, dict) else {"values": completion}
    values = [value if isinstance(value, str) else _json(value) for value in _as_list(known.get("values"))]
    for name in ("total", "hasMore"):
        if name in known and shapes.wrong({"values": [], name: known[name]}, shapes.Completion):
            del known[name]
    result["completion"] = {**known, "values": values[:100]}


_KINDS: Mapping[str, tuple[msgspec.json.Decoder[Any], Callable[[dict[str, Any], Mapping[str, Any]], None]]] = {
    "tools/call": (msgspec.json.Decoder(shapes.CallToolResult), _call),
    "resources/read": (msgspec.json.Decoder(shapes.ReadResourceResult), _read),
    "prompts/get": (msgspec.json.Decoder(shapes.GetPromptResult), _prompt),
    "completion/complete": (msgspec.json.Decoder(shapes.CompleteResult), _complete),
}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _blocks(value: Any) -> list[dict[str, Any]]:
    return [_block(each) for each in _as_list(value)]


def _block(value: Any) -> dict[str, Any]:
    if not shapes.wrong(value, shapes.Block):
        return dict(value)
    if isinstance(value, dict):
        bare = {name: member for name, member in value.items() if name not in ("annotations", "_meta")}
        if bare.get("type") == "resource":
            bare["resource"] = _contents(bare.get("resource"), None)
        if not shapes.wrong(bare, shapes.Block):
            return bare
        if value.get("type") == "text":
            return _text(value.get("text"))
    return _text(value)


def _contents(value: Any, uri: Any) -> dict[str, Any]:
    if not shapes.wrong(value, shapes.Contents):
        return dict(value)
    known = dict(value) if isinstance(value, dict) else {"text": value}
    for name, shape in (("uri", str), ("mimeType", str), ("_meta", dict), ("blob", str)):
        if name in known and not isinstance(known[name], shape):
            del known[name]
    known.setdefault("uri", uri if isinstance(uri, str) else "")
    if "text" in known or "blob" not in known:
        text = known.get("text", value)
        known["text"] = text if isinstance(text, str) else _json(text)
    return known


def _messages(value: Any) -> list[dict[str, Any]]:
    """:returns: one message, or several if it has a list of parts."""
    known = dict(value) if isinstance(value, dict) and "content" in value else {"content": value}
    known["role"] = "assistant" if known.get("role") == "assistant" else "user"
    return [{**known, "content": block} for block in _blocks(known["content"])]


def _text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else _json(value)}


def _json(value: Any) -> str:
    return codec.encode(value).decode()
