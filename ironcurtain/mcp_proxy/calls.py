"""Values of the gate: results, events of a call, and the parts of calls and results that it inspects."""

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
"""The member of a refusal's ``_meta`` with the stable code of the reason."""

RULE = "ironcurtain/rule"
"""The member of a refusal's ``_meta`` with the name of the rule."""


class CallResult(msgspec.Struct, frozen=True):
    """
    The result of a call. A refusal is a result, too, with :data:`CODE` in its ``_meta``.

    :param raw: a JSON ``CallToolResult`` object, with the agent's names for paths.
    :param error: the raw JSON error object if the server answered with an error; ``raw`` then presents it as a result.
    """

    raw: bytes
    is_error: bool
    error: bytes | None = None


class CallRaised(msgspec.Struct, frozen=True):
    """
    A call was judged and recorded.

    :param arguments: the arguments that would be forwarded.
    :param decision: the verdict: allow, escalate or deny.
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
    A person's decision on a call, or the lack of one.

    :param outcome: approved, denied, expired, withdrawn, unattended or too-many.
    :param number: the escalation's number.
    :param permission: number of the earlier escalation whose kept approval permits this call; 0 if a person was asked.
    """

    call_id: str
    number: int
    outcome: str
    by: str
    permission: int = 0


class CallFinished(msgspec.Struct, frozen=True):
    """
    A call ended.

    :param status: success, error, denied, withdrawn, cancelled or failed.
    :param duration: in seconds, including the wait for a person.
    :param size: size of the result in bytes.
    """

    call_id: str
    server: str
    tool: str
    status: str
    duration: float
    size: int


CallEvent = CallRaised | CallDecided | CallFinished


def refusal(text: str, code: str, rule: str = "") -> CallResult:
    """:returns: the result of a call that was not made, or whose real result is withheld."""
    meta = {CODE: code, RULE: rule} if rule else {CODE: code}
    content = [{"type": "text", "text": text}]
    return CallResult(codec.encode({"content": content, "isError": True, "_meta": meta}), True)


ERROR_TEXT = 1000
"""Maximum length in characters of a failed call's text in the audit log."""

NOT_FORWARDED = frozenset(("name", "arguments", "inputResponses", "requestState", "task"))
"""
Members of a call's parameters that are not forwarded unchanged. The proxy generates the first two; the others answer a
server's requests or start tasks that bypass the gate (revisions 2026-07-28 and 2025-11-25).
"""

NOT_FORWARDED_META = frozenset(("progressToken", "io.modelcontextprotocol/protocolVersion"))
CLAIMS = "io.modelcontextprotocol/client"
"""Prefixes of members of ``_meta`` that describe the client: to servers, the proxy is the client."""


class _Head(msgspec.Struct):
    isError: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()


_heads = msgspec.json.Decoder(_Head)


def failure_text(raw: bytes) -> str | None:
    """
    :param raw: JSON of a ``CallToolResult``.
    :returns: the text of a result that reports a failure, cut; ``None`` if the call succeeded.
    :raises InvalidMessage: it is not an object.
    """
    try:
        head = _heads.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidMessage(codec.INTERNAL_ERROR, "the result is not an object") from None
    return _text(bytes(head.content)) if bytes(head.isError) == b"true" else None


def clean(params: Mapping[str, Any]) -> dict[str, Any]:
    """:returns: the parameters that are forwarded unchanged, known or unknown."""
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
    """:param paths: maps the workspace's host path to the agent's. If both are the same, nothing is replaced."""

    def __init__(self, paths: PathMap) -> None:
        self._paths = paths
        self._forms = () if paths.host == paths.agent else _forms(paths.host)

    def raw(self, value: bytes) -> bytes:
        """
        :param value: raw JSON.
        :returns: the same bytes, or re-encoded with every string mapped.
        :raises InvalidMessage: the host's path occurs, but the JSON cannot be parsed.
        """
        for form in self._forms:
            if form in value:
                return codec.encode(self._mapped(codec.decode(value)))
        return value

    def text(self, text: str) -> str:
        """:returns: the text with the agent's path of the workspace."""
        return self._paths.to_agent_text(text) if self._forms else text

    def _mapped(self, value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return value if name in ("blob", "data") and _is_binary(value) else self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._mapped(member, key) for key, member in value.items()}
        return [self._mapped(member) for member in value] if isinstance(value, list) else value


def _is_binary(text: str) -> bool:
    # Images and binary resources are base64: only letters, digits, + and /, and a multiple of four long.
    return len(text) % 4 == 0 and " " not in text and "." not in text and not text.startswith("/")


def _forms(host: str) -> tuple[bytes, ...]:
    texts = {host, quote(host), json.dumps(host)[1:-1], json.dumps(host, ensure_ascii=False)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    return tuple(sorted(text.encode() for text in texts))
