"""A report on sessions: what was asked, who decided what, which calls were made, what it cost, and what is proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ironcurtain.session.summary import TEXT_LIMIT, ReportedDecision, SessionSummary
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

ROWS_SHOWN = 200
"""Maximum number of requests and of decisions of a session in a report."""

Row = tuple[str, ...]


class Table(NamedTuple):
    """
    A part of a report, as text that is not escaped yet.

    :param heading: of the first one of a session, what names the session.
    :param columns: their names, if they have any.
    """

    heading: str
    columns: Row
    rows: list[Row]


def tables(session: SessionSummary) -> Iterator[Table]:
    """:returns: what is reported of a session, its facts first; what would be empty is left out."""
    yield Table(f"Session {session.number}: {session.label}", (), list(_facts(session)))
    for table in _lists(session):
        more = len(table.rows) - ROWS_SHOWN
        rest: list[Row] = [(f"and {more} more",)] if more > 0 else []
        if table.rows:
            yield Table(table.heading, table.columns, [*table.rows[:ROWS_SHOWN], *rest])


def _lists(session: SessionSummary) -> Iterator[Table]:
    asked: list[Row] = [(_moment(each.time), each.message, each.error) for each in session.asked]
    yield Table("Asked", ("time", "message", "error"), asked)
    decided: list[Row] = [
        (_moment(d.time), d.outcome, _who(d), f"{d.server}.{d.tool}", d.rule) for d in session.decided
    ]
    yield Table("Decided", ("time", "outcome", "by", "call", "rule"), decided)
    calls: list[Row] = [(f"{c.server}.{c.tool}", _counts(c.verdicts), _counts(c.outcomes)) for c in session.calls]
    yield Table("Calls", ("tool", "policy", "outcome"), calls)
    yield Table("Refused", ("rule", "number"), [(each.rule, str(each.count)) for each in session.refused])
    packages: list[Row] = [(each.registry, release) for each in session.packages for release in each.releases]
    yield Table("Packages", ("registry", "package"), packages)


def _facts(session: SessionSummary) -> Iterator[Row]:
    yield "agent", session.kind
    yield "started", _moment(session.started)
    yield "ended", _moment(session.ended) or "no end recorded"
    yield "tokens", "unknown" if session.tokens_in is None else f"{session.tokens_in} in, {session.tokens_out} out"
    yield "cost", "unknown" if session.cost is None else f"${session.cost:.4f}"
    yield "audit log", f"{'intact' if session.intact else 'NOT intact'}. {' '.join(session.proved)}"


def _who(decided: ReportedDecision) -> str:
    kept = f", by the kept approval of escalation {decided.permission}" if decided.permission else ""
    return f"{decided.by or 'nobody'}{kept}"


def _moment(time: str) -> str:
    return time[:19].replace("T", " ")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def as_text(sessions: Sequence[SessionSummary]) -> Iterator[str]:
    """:returns: the lines of a report, escaped for a terminal."""
    for session in sessions:
        facts, *lists = tables(session)
        yield one_line(facts.heading, TEXT_LIMIT)
        yield from (f"  {name}: {one_line(value, TEXT_LIMIT)}" for name, value in facts.rows)
        for table in lists:
            yield f"  {table.heading}:"
            for row in table.rows:
                yield "    " + "  ".join(one_line(cell, TEXT_LIMIT) for cell in row if cell)
        yield ""
    broken = sum(not session.intact for session in sessions)
    yield f"{counted(len(sessions), 'session')}, {broken} with a log that is not intact"
