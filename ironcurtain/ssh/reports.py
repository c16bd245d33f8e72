"""What the commands print for people, safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ironcurtain.audit.chain import read_record
from ironcurtain.audit.view import render
from ironcurtain.display import json_line, one_line, paragraphs
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.model import SessionInfo

ARGUMENT_LIMIT = 2000
"""Most characters of one argument that are shown; the digest covers all of it."""


def sessions(found: Sequence[SessionInfo], now: float) -> Iterator[str]:
    """:returns: the lines of a table."""
    if not found:
        yield "No sessions."
        return
    rows = [("N", "STATE", "AGE", "WAITING", "SESSION")]
    for info in found:
        age = ago(now - datetime.fromisoformat(info.started_at).timestamp())
        rows.append((str(info.number), info.state, age, str(info.pending), one_line(info.label, 80)))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])


def escalations(found: Sequence[EscalationView], now: float) -> Iterator[str]:
    """:returns: all that each one would do, and until when it waits."""
    if not found:
        yield "Nothing waits for a decision."
    for index, view in enumerate(found):
        if index:
            yield ""
        yield from _escalation(view, now)


def decided(view: EscalationView) -> str:
    """:returns: what a decision did."""
    tool = f"{one_line(view.server, 64)}.{one_line(view.tool, 64)}"
    return f"{view.outcome.capitalize()}: {tool} in session {view.session}."


def log_line(line: bytes) -> str:
    """:returns: a line of a session's log."""
    return paragraphs(line.decode(errors="backslashreplace").rstrip("\n"))


def record_line(line: bytes) -> str:
    """:returns: an audit record."""
    record = read_record(line.removesuffix(b"\n"))
    return render(record) if record is not None else "       (no record)"


def ago(seconds: float) -> str:
    """:returns: a time span in its largest fitting unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _escalation(view: EscalationView, now: float) -> Iterator[str]:
    state = f"{ago(view.expires_at - now)} left"
    if view.outcome:
        state = f"{view.outcome}{f' by {one_line(view.by, 64)}' if view.by else ''}"
    yield f"{view.number}  {one_line(view.server, 64)}.{one_line(view.tool, 64)}  ({state})"
    for name, value in view.arguments.items():
        yield f"   {one_line(name, 64)} = {_argument(value)}"
    yield f"   why: {one_line(view.reason, 400)} [{one_line(view.rule, 64)}]"
    yield f"   session {view.session}, {one_line(view.label, 80)}; digest {view.digest[:16]}"


def _argument(value: Any) -> str:
    return one_line(value, ARGUMENT_LIMIT) if isinstance(value, str) else json_line(value, ARGUMENT_LIMIT)
