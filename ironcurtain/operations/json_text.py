"""JSON output for programs, with every time in ISO 8601, UTC. People may look at it in a terminal."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ironcurtain.audit.chain import timestamp
from ironcurtain.operations.model import EscalationView, PermissionView

_TIMES = ("raised_at", "expires_at", "closed_at", "since")


_UNUSUAL = re.compile(r"[^\n -~]")


def json_text(value: Any) -> str:
    """:returns: a value as JSON, indented; unset times of an escalation are null."""
    return escaped(msgspec.json.format(msgspec.json.encode(_dated(value), enc_hook=str), indent=2))


def escaped(text: bytes) -> str:
    """:returns: JSON with the same meaning, in which what a terminal would obey or hide is escaped."""
    return _UNUSUAL.sub(lambda found: found[0] if found[0].isprintable() else _escape(found[0]), text.decode())


def _escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


def _dated(value: Any) -> Any:
    if isinstance(value, list):
        return [_dated(each) for each in value]
    if not isinstance(value, EscalationView | PermissionView):
        return value
    members = msgspec.structs.asdict(value)
    times = {name: timestamp(members[name]) if members[name] else None for name in _TIMES if name in members}
    return members | times
