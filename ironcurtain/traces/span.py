"""Spans: what the agent of a shell did, in all and for each instruction, as lines of JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

TEXT_LIMIT: Final = 2000
"""Most characters of an instruction or a command in a span."""

SPAN_BEGINS: Final = b'{"trace_id":"'
"""What every line of :func:`written` begins with."""


class TracedAction(msgspec.Struct, frozen=True, kw_only=True):
    """
    A step that was done.

    :param type: ``shell``, a command; ``edit``, a file; ``mcp``, a call of a tool; ``agent``, an agent below.
    :param exit: its status, if it has one.
    """

    type: str = "shell"
    command: str
    exit: int | None
    duration_ms: int


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """
    What an agent did for one instruction, or in all.

    :param start: as ISO 8601 says it, as is ``end``.
    :param instruction: empty for the span of the agent itself.
    :param approval: who let its commands run: ``policy``, ``human``, both with a comma, or empty.
    :param tokens_in: that the model says it used, as ``tokens_out``; ``None``: it did not say.
    :param result: ``success``, ``failure``, ``denied``, ``interrupted``.
    :param feedback: what the user thought of it, as far as they showed it.
    """

    trace_id: str
    span_id: str
    parent_span: str
    pid: int
    host: str
    start: str
    end: str
    instruction: str
    backend: str
    model: str
    actions: tuple[TracedAction, ...]
    tokens_in: int | None
    tokens_out: int | None
    approval: str
    result: str
    feedback: str = ""


def moment(seconds: float) -> str:
    """:param seconds: since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written(span: Span, scrub: Callable[[str], str], *, anonymize: bool) -> bytes:
    """
    :param scrub: takes secrets out of a text.
    :param anonymize: whether texts are replaced by hashes, in which the trace's id is mixed: equal texts of a trace can
        be recognised, and no others.
    :returns: a span as one line.
    """

    def text(value: str) -> str:
        if anonymize:
            digest = hashlib.sha256(f"{span.trace_id} {value}".encode("utf-8", "replace")).hexdigest()
            return f"sha256:{digest[:16]}" if value else ""
        return scrub(value)[:TEXT_LIMIT]

    actions = tuple(msgspec.structs.replace(action, command=text(action.command)) for action in span.actions)
    kept = msgspec.structs.replace(
        span, instruction=text(span.instruction), feedback="" if anonymize else text(span.feedback), actions=actions
    )
    return msgspec.json.encode(kept) + b"\n"


class _Started(msgspec.Struct):
    start: datetime


def recent(lines: bytes, now: float, days: int) -> bytes:
    """
    :param lines: of a file of spans.
    :param now: seconds since 1970.
    :returns: those that began within so many days; what is no span is left out.
    """
    oldest = now - days * 86400
    return b"".join(line for line in lines.splitlines(keepends=True) if _began(line) >= oldest)


def _began(line: bytes) -> float:
    try:
        return msgspec.json.decode(line, type=_Started).start.timestamp()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return 0.0
