"""What the gate tells the session of each call, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ironcurtain.jsonrpc import codec

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
