"""
Parse an agent's output, and explain why there is no answer.

The output comes from an untrusted program: lines can contain anything, members can be missing or have another type, and
texts are escaped before a person reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ironcurtain.agents.adapter import Kind, TurnFailed, TurnOutcome
from ironcurtain.text.display import one_line, paragraphs

REASON_LIMIT = 1000
"""Maximum length in characters of the agent's reason."""

TAIL_LINES, TAIL_LIMIT = 15, 2000
"""Maximum number of lines and characters of output in a message."""

COUNT_LIMIT = 10**12
"""Larger token counts are invalid."""

OURS = "IronCurtain: "
"""Beginning of the reason of every refusal by the MITM proxy."""

_QUOTA = re.compile(
    r"quota|rate.?limit|too many requests|usage limit|credit balance|billing|payment|resource_exhausted", re.IGNORECASE
)
_OVERLOADED = re.compile(
    r"overloaded|at capacity|unavailable|internal server error|bad gateway|gateway time|server_error", re.IGNORECASE
)
_ADVICE: dict[Kind, str] = {
    "quota": "the account at the model's provider has reached a limit, or needs a payment",
    "overloaded": "the model's provider is unavailable: try again later",
    "refused": "the MITM proxy refused a request to the model: see the audit log",
    "empty": "it ended without an answer: ask again, or in other words",
    "mcp-down": "it had no connection to its tools: try again; if that does not help, see the session's log",
    "failed": "it failed",
}


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """:returns: the JSON objects that are alone on a line; other lines are ignored."""
    for line in data.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                # Not msgspec: a text that was cut within a character must not make the complete answer unusable.
                value = json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def dig(value: Any, *path: str) -> Any:
    """:returns: the member at the end of a path of objects, ``None`` if the path does not exist."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """:returns: the text at the end of a path, empty if there is none; lone surrogates become question marks."""
    found = dig(value, *path)
    return found.encode("utf-8", "replace").decode() if isinstance(found, str) else ""


def count_at(value: Any, *path: str) -> int:
    """:returns: the count at the end of a path, 0 if there is no valid one."""
    found = dig(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= COUNT_LIMIT else 0


def status_at(value: Any, *path: str) -> int | None:
    """:returns: the HTTP status at the end of a path."""
    found = count_at(value, *path)
    return found if 100 <= found <= 599 else None


def failure(
    agent: str, outcome: TurnOutcome, reason: str = "", *, status: int | None = None, kind: Kind | None = None
) -> TurnFailed:
    """
    Explain to the user why there is no answer.

    :param agent: its display name.
    :param reason: the agent's own reason, if any.
    :param status: the HTTP status of the model's response, if the agent reported it.
    :param kind: the kind, if certain; else it is derived from reason, status and standard error.
    """
    end = _end(outcome.stderr)
    kind = kind or _judge(reason or end, status)
    lines = [f"{agent} gave no answer (exit status {outcome.exit_code}): {_ADVICE[kind]}"]
    if reason.strip():
        lines[0] += f". It said: {one_line(reason.strip(), REASON_LIMIT)}"
    if kind == "failed" or not reason.strip():
        shown = end or _end(b"\n".join(line for line in outcome.stdout.splitlines() if not line.startswith(b"{")))
        lines += ["The end of its output:", *(f"  {line}" for line in shown.split("\n"))] if shown else []
    return TurnFailed(kind, "\n".join(lines))


def _judge(reason: str, status: int | None) -> Kind:
    server_error = status is not None and status >= 500
    if OURS in reason:
        return "overloaded" if server_error else "refused"
    if status in (402, 429) or _QUOTA.search(reason):
        return "quota"
    return "overloaded" if server_error or _OVERLOADED.search(reason) else "failed"


def _end(data: bytes) -> str:
    """:returns: the last non-blank lines, escaped."""
    text = paragraphs(data[-4 * TAIL_LIMIT :].decode("utf-8", "replace")).strip()
    return "\n".join(text[-TAIL_LIMIT:].split("\n")[-TAIL_LINES:])
