"""The calls since a snapshot that an undo does not undo, from the audit log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ironcurtain.audit.chain import read_record
from ironcurtain.policy.verdict import Reversal

_UNDONE = frozenset((Reversal.SNAPSHOT, Reversal.NO_SNAPSHOT, Reversal.READS))
"""Calls that changed files in the workspace only, or nothing."""

_NOT_MADE = frozenset(("denied", "withdrawn"))


class LastingCall(msgspec.Struct, frozen=True):
    """
    :param time: UTC in ISO 8601.
    :param arguments: as they are in the audit log.
    :param undo: why it cannot be undone: :class:`~ironcurtain.policy.verdict.Reversal`.
    """

    time: str
    server: str
    tool: str
    arguments: dict[str, Any]
    undo: str


def lasting_calls(lines: Iterable[bytes], snapshot: int) -> list[LastingCall]:
    """
    :param lines: of the audit log.
    :param snapshot: number of a snapshot; earlier calls are left out.
    :returns: the calls since then that were made, or may have been, and cannot be undone.
    """
    since, found = False, dict[str, LastingCall]()
    for line in lines:
        record = read_record(line.removesuffix(b"\n")) or {}
        kind, call = record.get("kind"), str(record.get("callId"))
        if kind == "snapshot":
            since = since or record.get("number", 0) >= snapshot
        elif kind == "call" and since and record.get("decision") != "deny" and record.get("undo") not in _UNDONE:
            found[call] = LastingCall(
                str(record.get("time")),
                str(record.get("server")),
                str(record.get("tool")),
                dict(record.get("arguments") or {}),
                str(record.get("undo")),
            )
        elif kind == "outcome" and record.get("status") in _NOT_MADE:
            found.pop(call, None)
    return list(found.values())
