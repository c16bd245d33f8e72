"""What the gate looks at, in a call's other parameters and in its result, without parsing more than it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.codec import InvalidMessage

ERROR_TEXT = 1000
"""Most characters of a failed call's text that are recorded."""

NOT_FORWARDED = frozenset(("name", "arguments", "inputResponses", "requestState", "task"))
"""
Members of a call's parameters that are not passed on as they are: the first two are put in anew, and the others answer
a server's questions or start tasks past the gate (revisions 2026-07-28 and 2025-11-25).
"""

NOT_FORWARDED_META = frozenset(("progressToken", "io.modelcontextprotocol/protocolVersion"))
CLAIMS = "io.modelcontextprotocol/client"
"""Members of ``_meta`` that start like this say what the agent is and can do: to servers, we are the client."""


class _Head(msgspec.Struct):
    isError: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()


_heads = msgspec.json.Decoder(_Head)


def failure_text(raw: bytes) -> str | None:
    """
    :param raw: JSON of a ``CallToolResult``.
    :returns: the text of a result that says the call failed, cut; ``None`` if it did not fail.
    :raises InvalidMessage: it is no object.
    """
    try:
        head = _heads.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidMessage(codec.INTERNAL_ERROR, "the result is no object") from None
    return _text(bytes(head.content)) if bytes(head.isError) == b"true" else None


def clean(params: Mapping[str, Any]) -> dict[str, Any]:
    """:returns: the parameters that are passed on as they are, known or not."""
    kept = {name: value for name, value in params.items() if name not in NOT_FORWARDED}
    if isinstance(meta := kept.pop("_meta", None), dict):
        passed = {n: v for n, v in meta.items() if n not in NOT_FORWARDED_META and not n.startswith(CLAIMS)}
        if passed:
            kept["_meta"] = passed
    return kept


def _text(raw: bytes) -> str:
    try:
        content = codec.decode(raw)
    except InvalidMessage:
        return ""
    blocks = content if isinstance(content, list) else []
    texts = (block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str))
    return "\n".join(texts)[:ERROR_TEXT]
