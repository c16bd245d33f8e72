"""
Read what an agent printed, and say why it is no answer.

Everything here comes from a program that nobody trusts: lines may be anything, members may be missing or of another
type, and texts are made safe before a person reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ironcurtain.agents.adapter import Kind, TurnFailed, TurnOutcome
from ironcurtain.text.display import one_line, paragraphs

REASON_LIMIT = 1000
"""Most characters of what the agent gives as its reason."""

TAIL_LINES, TAIL_LIMIT = 15, 2000
"""Most lines and characters of the end of the output that a message shows."""

COUNT_LIMIT = 10**12
"""Token counts above this are nonsense."""

OURS = "IronCurtain: "
"""What the reason of every refusal by the MITM proxy begins with."""

_QUOTA = re.compile(
    r"quota|rate.?limit|too many requests|usage limit|credit balance|billing|payment|resource_exhausted", re.IGNORECASE
)
_OVERLOADED = re.compile(
    r"overloaded|at capacity|unavailable|internal server error|bad gateway|gateway time|server_error", re.IGNORECASE
)
_ADVICE: dict[Kind, str] = {
    "quota": "the account at the model's provider has reached a limit, or needs a payment",
    "overloaded": "the model's provider cannot answer now: try again later",
    "refused": "the MITM proxy refused a request to the model: the audit log says which",
    "empty": "it ended well and said nothing: ask again, or in other words",
    "mcp-down": "it had no connection to its tools: try again; if that does not help, see the session's log",
    "failed": "it failed",
}


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """:returns: the JSON objects that stand alone on a line; all else is passed over."""
    for line in data.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                # Not msgspec: a text that was cut in the middle of a character must not cost the whole answer.
                value = json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def dig(value: Any, *path: str) -> Any:
    """:returns: the member at the end of a path of objects, ``None`` where the path breaks off."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """:returns: the text at the end of a path, empty if there is none; half characters become question marks."""
    found = dig(value, *path)
    return found.encode("utf-8", "replace").decode() if isinstance(found, str) else ""


def count_at(value: Any, *path: str) -> int:
    """:returns: the count at the end of a path, 0 if there is none that makes sense."""
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
    Tell the person why there is no answer.

    :param agent: its display name.
    :param reason: what the agent itself gave as the reason, where it did.
    :param status: the HTTP status of the model's answer, where the agent told it.
    :param kind: why, where that is certain; else it is judged by reason, status and standard error.
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
    """:returns: the last lines that hold anything, safe to show."""
    text = paragraphs(data[-4 * TAIL_LIMIT :].decode("utf-8", "replace")).strip()
    return "\n".join(text[-TAIL_LIMIT:].split("\n")[-TAIL_LINES:])
