"""Styled text in columns, before any terminal sees it. Pure."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from ironcurtain.text.columns import Columns, Line, Span

_ALSO_WIDE = (
    ("\u2630", "\u2637"),
    ("\u268a", "\u268f"),
    ("\u4dc0", "\u4dff"),
    ("\U0001d300", "\U0001d376"),
    ("\U0001f1e6", "\U0001f1ff"),
)
"""Wide since Unicode 16, or in some terminals, and not in the tables of every Python."""


@lru_cache(4096)  # lines drawn with box characters are most of a frame
def _width(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 2 if any(first <= character <= last for first, last in _ALSO_WIDE) else 1


COLUMNS = Columns(_width)
"""
The most columns that text can take in any terminal. A combining character counts as one: so no number of them can hide
in a line.
"""

cells, wrap = COLUMNS.cells, COLUMNS.wrap


def cut(text: str, width: int) -> str:
    """:returns: the text, shortened at its end to at most ``width`` columns."""
    if cells(text) <= width:
        return text
    return text[: COLUMNS.fitting(text, 0, width - 1)] + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """:returns: the text with spaces up to ``width`` columns, shortened if it is longer."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def clip(line: Line, width: int) -> Line:
    """:returns: the line without what is beyond ``width`` columns."""
    spans, room = [], width
    for span in line:
        shown = cut(span.text, room)
        spans.append(Span(shown, span.style))
        room -= cells(shown)
    return tuple(span for span in spans if span.text)


def left(seconds: float) -> str:
    """:returns: a time that runs out, as ``4:59``."""
    whole = max(int(seconds), 0)
    return f"{whole // 60}:{whole % 60:02d}"


def age(seconds: float) -> str:
    """:returns: a time span in its largest fitting unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
