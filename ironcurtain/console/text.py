"""Styled text in columns, before any terminal sees it. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

Style = Literal["", "dim", "bold", "good", "bad", "warn", "key", "title", "chosen", "old", "new"]
"""How a piece of text looks; ``chosen`` is the row that keys act on, ``old`` and ``new`` are the sides of a change."""


_ALSO_WIDE = (
    ("\u2630", "\u2637"),
    ("\u268a", "\u268f"),
    ("\u4dc0", "\u4dff"),
    ("\U0001d300", "\U0001d376"),
    ("\U0001f1e6", "\U0001f1ff"),
)
"""Wide since Unicode 16, or in some terminals, and not in the tables of every Python."""


class Span(NamedTuple):
    """A piece of a line. The text is safe to show: escaped, and without line ends."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]
"""One line; an empty one is a blank line."""


def plain(line: Line) -> str:
    """:returns: a line without its styles."""
    return "".join(span.text for span in line)


def cells(text: str) -> int:
    """
    :returns: how many columns the text takes at most. A combining character counts as one: so no number of them can
        hide in a line.
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 2 if any(first <= character <= last for first, last in _ALSO_WIDE) else 1


def cut(text: str, width: int) -> str:
    """:returns: the text, shortened at its end to at most ``width`` columns."""
    if cells(text) <= width:
        return text
    return text[: _fitting(text, 0, width - 1)] + "…" if width > 0 else ""


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


def wrap(text: str, width: int) -> Iterator[str]:
    """
    Break text into pieces of at most ``width`` columns, at spaces where there are any near; nothing is left out but the
    space at which it is broken.
    """
    width, start = max(width, 2), 0
    while (end := _fitting(text, start, width)) < len(text):
        space = text.rfind(" ", start + 1, end + 1)
        broken = space if space - start > (end - start) // 2 else end
        yield text[start:broken]
        start = broken + (text[broken] == " ")
    yield text[start:]


def _fitting(text: str, start: int, width: int) -> int:
    """:returns: the end of the longest part from ``start`` that fits."""
    if text[start : start + width + 1].isascii():
        return min(start + width, len(text))
    used = 0
    for index in range(start, len(text)):
        used += _width(text[index])
        if used > width:
            return index
    return len(text)


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
