"""Render an audit log for people: one line per record, escaped for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ironcurtain.text.display import json_line, one_line

ARGUMENTS_LIMIT = 160
"""Maximum length of a call's arguments in characters."""

OTHER_LIMIT = 240
"""Maximum length, in characters, of a record of another kind."""

Record = Mapping[str, Any]


def render(record: Record) -> str:
    """:returns: a record as one line, without a line end."""
    body = _KINDS.get(str(record.get("kind")), _other)(record)
    return f"{_text(record, 'sequence', 12):>5}  {_clock(record)}  {body}"


def _clock(record: Record) -> str:
    return one_line(str(record.get("time", ""))[11:23], 12)


def _text(record: Record, name: str, limit: int = 200) -> str:
    return one_line(str(record.get(name, "")), limit)


def _call(record: Record) -> str:
    arguments = json_line(record.get("arguments", {}), ARGUMENTS_LIMIT)
    target = f"{_text(record, 'server', 64)}.{_text(record, 'tool', 64)}"
    return f"{_text(record, 'decision', 10):<9} {target} {arguments}  [{_text(record, 'rule', 64)}]"


def _decision(record: Record) -> str:
    number, by = _text(record, "number", 12), _text(record, "by", 64)
    if "permission" in record:
        permission = _text(record, "permission", 12)
        return f"{_text(record, 'outcome', 12):<9} by the permission of escalation {permission}, kept by {by}"
    return f"{_text(record, 'outcome', 12):<9} escalation {number}{f' by {by}' if by else ''}"


def _permission(record: Record) -> str:
    number, by = _text(record, "number", 12), _text(record, "by", 64)
    return f"{'kept':<9} escalation {number} by {by}: {_text(record, 'words', OTHER_LIMIT)}"


def _revoked(record: Record) -> str:
    number, by = _text(record, "number", 12), _text(record, "by", 64)
    return f"{'revoked':<9} escalation {number} by {by}, used {_text(record, 'used', 12)} times"


def _outcome(record: Record) -> str:
    size = f", {_text(record, 'size', 12)} bytes" if "size" in record else ""
    why = f": {_text(record, 'error')}" if record.get("error") else ""
    took = f" after {_text(record, 'durationMs', 12)} ms" if "durationMs" in record else ""
    return f"{_text(record, 'status', 12):<9}{took}{size}{why}"


def _checkpoint(record: Record) -> str:
    return f"{'signed':<9} what precedes, with key {_text(record, 'key', 64)}"


def _other(record: Record) -> str:
    shown = {k: v for k, v in record.items() if k not in ("sequence", "time", "kind", "previous")}
    return f"{_text(record, 'kind', 20):<9} {json_line(shown, OTHER_LIMIT)}"


_KINDS: dict[str, Callable[[Record], str]] = {
    "call": _call,
    "checkpoint": _checkpoint,
    "decision": _decision,
    "outcome": _outcome,
    "permission": _permission,
    "question": _call,
    "permission-revoked": _revoked,
}
