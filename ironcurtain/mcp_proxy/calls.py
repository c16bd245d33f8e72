"""What the gate looks at in a call and its result, what it tells the session, and what it gives back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.codec import InvalidMessage
from ironcurtain.policy.pathmap import PathMap

CODE = "ironcurtain/code"
"""The member of a refusal's ``_meta`` that says in a stable word why."""

RULE = "ironcurtain/rule"
"""The member of a refusal's ``_meta`` that names the rule."""


class CallResult(msgspec.Struct, frozen=True):
    """
    What came of a call. A refusal is one too: its ``_meta`` has :data:`CODE`.

    :param raw: a JSON ``CallToolResult`` object, with the agent's names for paths.
    :param error: the raw JSON error object, if that is what the server answered; ``raw`` then shows it as a result.
    """

    raw: bytes
    is_error: bool
    error: bytes | None = None


class CallRaised(msgspec.Struct, frozen=True):
    """
    A call was judged and recorded.

    :param arguments: those that would be forwarded.
    :param decision: what the policy says: allow, escalate or deny.
    """

    call_id: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    decision: str
    rule: str
    reason: str


class CallDecided(msgspec.Struct, frozen=True):
    """
    A person's decision on a call came, or came not.

    :param outcome: approved, denied, expired, withdrawn, unattended or too-many.
    :param number: the escalation's.
    :param permission: number of the earlier escalation whose approval was kept and permits this call; 0 if a person was
        asked.
    """

    call_id: str
    number: int
    outcome: str
    by: str
    permission: int = 0


class CallFinished(msgspec.Struct, frozen=True):
    """
    A call is over.

    :param status: success, error, denied, withdrawn, cancelled or failed.
    :param duration: in seconds, waiting for a person included.
    :param size: of the result, in bytes.
    """

    call_id: str
    server: str
    tool: str
    status: str
    duration: float
    size: int


CallEvent = CallRaised | CallDecided | CallFinished


def refusal(text: str, code: str, rule: str = "") -> CallResult:
    """:returns: the result of a call that was not made, or whose result is not given out."""
    meta = {CODE: code, RULE: rule} if rule else {CODE: code}
    content = [{"type": "text", "text": text}]
    return CallResult(codec.encode({"content": content, "isError": True, "_meta": meta}), True)


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


class PathRewriter:
    """:param paths: the session's workspace under its two names; nothing is replaced where they are the same."""

    def __init__(self, paths: PathMap) -> None:
        self._paths = paths
        self._forms = () if paths.host == paths.agent else _forms(paths.host)

    def raw(self, value: bytes) -> bytes:
        """
        :param value: raw JSON.
        :returns: the same bytes, or re-encoded with every text in it mapped.
        :raises InvalidMessage: the host's path occurs, but the JSON cannot be looked into.
        """
        for form in self._forms:
            if form in value:
                return codec.encode(self._mapped(codec.decode(value)))
        return value

    def text(self, text: str) -> str:
        """:returns: the text with the agent's name for the workspace."""
        return self._paths.to_agent_text(text) if self._forms else text

    def _mapped(self, value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return value if name in ("blob", "data") and _is_binary(value) else self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._mapped(member, key) for key, member in value.items()}
        return [self._mapped(member) for member in value] if isinstance(value, list) else value


def _is_binary(text: str) -> bool:
    # Images and binary resources are base64: letters, digits, + and / only, and never short of a multiple of four.
    return len(text) % 4 == 0 and " " not in text and "." not in text and not text.startswith("/")


def _forms(host: str) -> tuple[bytes, ...]:
    texts = {host, quote(host), json.dumps(host)[1:-1], json.dumps(host, ensure_ascii=False)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    return tuple(sorted(text.encode() for text in texts))
