"""The report of ``ironcurtain report`` as a page for browsers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ironcurtain.session.summary import TEXT_LIMIT, SessionSummary
from ironcurtain.text.display import one_line
from ironcurtain.view.session_report import Row, tables

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
    yield _HEAD
    for session in sessions:
        for number, (heading, columns, rows) in enumerate(tables(session)):
            level = 3 if number else 2
            yield f"<h{level}>{_cell(heading)}</h{level}>\n<table>\n"
            yield _row("th", columns) if columns else ""
            yield from (_row("td", row) for row in rows)
            yield "</table>\n"
    yield "</body>\n</html>\n"


def _row(tag: str, cells: Row) -> str:
    return f"<tr>{''.join(f'<{tag}>{_cell(cell)}</{tag}>' for cell in cells)}</tr>\n"


def _cell(text: str) -> str:
    return escape(one_line(text, TEXT_LIMIT))
