"""A report on sessions: what was asked, who decided what, which calls were made, what it cost, and what is proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from ironcurtain.session.summary import TEXT_LIMIT, ReportedDecision, SessionSummary
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

ROWS_SHOWN = 200
"""Maximum number of requests and of decisions of a session in a report."""

Row = tuple[str, ...]


def _sections(session: SessionSummary) -> Iterator[tuple[str, Row, list[Row]]]:
    """:returns: heading, names of the columns, and rows of each table, as text that is not escaped yet."""
    asked: list[Row] = [(_moment(each.time), each.message, each.error) for each in session.asked]
    yield "Asked", ("time", "message", "error"), asked
    decided: list[Row] = [
        (_moment(d.time), d.outcome, _who(d), f"{d.server}.{d.tool}", d.rule) for d in session.decided
    ]
    yield "Decided", ("time", "outcome", "by", "call", "rule"), decided
    calls: list[Row] = [(f"{c.server}.{c.tool}", _counts(c.verdicts), _counts(c.outcomes)) for c in session.calls]
    yield "Calls", ("tool", "policy", "outcome"), calls
    yield "Refused", ("rule", "number"), [(each.rule, str(each.count)) for each in session.refused]
    packages: list[Row] = [(each.registry, release) for each in session.packages for release in each.releases]
    yield "Packages", ("registry", "package"), packages


def _facts(session: SessionSummary) -> Iterator[Row]:
    cost = "unknown" if session.cost is None else f"${session.cost:.4f}"
    yield "agent", session.kind
    yield "started", _moment(session.started)
    yield "ended", _moment(session.ended) or "no end recorded"
    yield "tokens", "unknown" if session.tokens_in is None else f"{session.tokens_in} in, {session.tokens_out} out"
    yield "cost", cost
    yield "audit log", f"{'intact' if session.intact else 'NOT intact'}. {' '.join(session.proved)}"


def _who(decided: ReportedDecision) -> str:
    kept = f", by the kept approval of escalation {decided.permission}" if decided.permission else ""
    return f"{decided.by or 'nobody'}{kept}"


def _moment(time: str) -> str:
    return time[:19].replace("T", " ")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _title(session: SessionSummary) -> str:
    return f"Session {session.number}: {session.label}"


def _shown(rows: list[Row], clean: Callable[[str], str]) -> list[Row]:
    kept = [tuple(clean(cell) for cell in row) for row in rows[:ROWS_SHOWN]]
    if (more := len(rows) - ROWS_SHOWN) > 0:
        kept.append((f"and {more} more",))
    return kept


def as_text(sessions: Sequence[SessionSummary]) -> Iterator[str]:
    """:returns: the lines of a report, escaped for a terminal."""

    def clean(text: str) -> str:
        return one_line(text, TEXT_LIMIT)

    for session in sessions:
        yield clean(_title(session))
        yield from (f"  {name}: {clean(value)}" for name, value in _facts(session))
        for heading, _, rows in _sections(session):
            if rows:
                yield f"  {heading}:"
                yield from ("    " + "  ".join(filter(None, row)) for row in _shown(rows, clean))
        yield ""
    broken = sum(not session.intact for session in sessions)
    yield f"{counted(len(sessions), 'session')}, {broken} with a log that is not intact"


_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>IronCurtain report</title>
<style>
body { font: 15px/1.4 sans-serif; margin: 2em; max-width: 70em; }
table { border-collapse: collapse; margin-bottom: 1em; }
th, td { border: 1px solid #bbb; padding: .2em .5em; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>IronCurtain report</h1>
"""


def as_html(sessions: Sequence[SessionSummary]) -> Iterator[str]:
    """:returns: pieces of one page without scripts or references to anything else."""

    def clean(text: str) -> str:
        return escape(one_line(text, TEXT_LIMIT))

    yield _HEAD
    for session in sessions:
        yield f"<h2>{clean(_title(session))}</h2>\n"
        yield from _table((), _shown(list(_facts(session)), clean))
        for heading, columns, rows in _sections(session):
            if rows:
                yield f"<h3>{heading}</h3>\n"
                yield from _table(columns, _shown(rows, clean))
    yield "</body>\n</html>\n"


def _table(columns: Row, rows: Sequence[Row]) -> Iterator[str]:
    yield "<table>\n"
    if columns:
        yield f"<tr>{''.join(f'<th>{name}</th>' for name in columns)}</tr>\n"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n"
    yield "</table>\n"
