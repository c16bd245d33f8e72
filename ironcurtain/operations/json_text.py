"""JSON output for programs, with every time in ISO 8601, UTC."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.audit.chain import timestamp
from ironcurtain.operations.model import EscalationView, PermissionView

_TIMES = ("raised_at", "expires_at", "closed_at", "since")


def json_text(value: Any) -> str:
    """:returns: a value as JSON, indented; unset times of an escalation are null."""
    return msgspec.json.format(msgspec.json.encode(_dated(value), enc_hook=str), indent=2).decode()


def _dated(value: Any) -> Any:
    if isinstance(value, list):
        return [_dated(each) for each in value]
    if not isinstance(value, EscalationView | PermissionView):
        return value
    members = msgspec.structs.asdict(value)
    times = {name: timestamp(members[name]) if members[name] else None for name in _TIMES if name in members}
    return members | times
