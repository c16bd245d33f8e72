"""What the commands print for people, safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ironcurtain.audit.chain import read_record
from ironcurtain.audit.view import render
from ironcurtain.operations.model import PermissionView
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.words import outside_sandboxes
from ironcurtain.text.display import ago, one_line, paragraphs, table
from ironcurtain.view.escalations import permission_lines


def sessions(found: Sequence[SessionInfo], now: float) -> Sequence[str]:
    """:returns: the lines of a table."""
    if not found:
        return ("No sessions.",)
    rows = [_row(info, now) for info in found]
    return (*table(("N", "STATE", "AGE", "WAITING", "SESSION"), rows), *outside_sandboxes(found))


def permissions(found: Sequence[PermissionView], now: float) -> Iterator[str]:
    """:returns: what nobody is asked about."""
    if not found:
        yield "No approvals were kept."
    for view in found:
        yield from permission_lines(view, now)


def log_line(line: bytes) -> str:
    """:returns: a line of a session's log."""
    return paragraphs(line.decode(errors="backslashreplace").rstrip("\n"))


def record_line(line: bytes) -> str:
    """:returns: an audit record."""
    record = read_record(line.removesuffix(b"\n"))
    return render(record) if record is not None else "       (no record)"


def _row(info: SessionInfo, now: float) -> tuple[str, ...]:
    age = ago(now - datetime.fromisoformat(info.started_at).timestamp())
    return str(info.number), info.state, age, str(info.pending), one_line(info.label, 80)
