"""
Styled text, and its maximum width in columns of a terminal.

A combining character counts as one column, so that no number of them can hide in a line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Style = Literal["", "dim", "bold", "code", "good", "bad", "warn", "key", "title", "chosen", "old", "new"]
"""Styles: ``key`` marks what to type, ``chosen`` the focused row, ``old`` and ``new`` the sides of a change."""


class Span(NamedTuple):
    """A piece of a line. The text is escaped, and has no line ends."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]
"""One line; an empty one is a blank line."""


def unstyled(line: Line) -> str:
    """:returns: a line without its styles."""
    return "".join(span.text for span in line)


_ALSO_WIDE = (
    ("\u2630", "\u2637"),
    ("\u268a", "\u268f"),
    ("\u4dc0", "\u4dff"),
    ("\U0001d300", "\U0001d376"),
    ("\U0001f1e6", "\U0001f1ff"),
)
"""Wide since Unicode 16, or in some terminals, and missing in some Pythons' tables."""


@lru_cache(4096)  # box-drawing lines are most of a frame
def _width(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 2 if any(first <= character <= last for first, last in _ALSO_WIDE) else 1


def cells(text: str) -> int:
    """:returns: the maximum number of columns of the text."""
    return len(text) if text.isascii() else sum(map(_width, text))


def fitting(text: str, start: int, width: int) -> int:
    """:returns: the end of the longest part from ``start`` that fits."""
    if text[start : start + width + 1].isascii():
        return min(start + width, len(text))
    used = 0
    for index in range(start, len(text)):
        used += _width(text[index])
        if used > width:
            return index
    return len(text)


def _breaks(text: str, width: int, indent: int = 0, whole_words: bool = False) -> Iterator[tuple[int, int]]:
    """:returns: begin and end of each row; only the space at a break is left out."""
    start = 0
    while (end := fitting(text, start, max(width - (indent if start else 0), 2))) < len(text):
        space = text.rfind(" ", start + 1, end + 1)
        if whole_words and (space < 0 or not text[start:space].strip(" ")):
            space = text.find(" ", end)
            if space < 0:
                break
        end = space if whole_words or space - start > (end - start) // 4 else max(end, start + 1)
        yield start, end
        start = end + (text[end] == " ")
    if start < len(text) or not start:
        yield start, len(text)


def wrap(text: str, width: int) -> Iterator[str]:
    """
    Wrap text into pieces of at most ``width`` columns, at spaces if possible; only the space at a break is removed.
    """
    return (text[start:end] for start, end in _breaks(text, width))


def cut(text: str, width: int, rest: str = "…") -> str:
    """:returns: the text, cut to at most ``width`` columns; ``rest`` marks the cut."""
    if cells(text) <= width:
        return text
    room = width - cells(rest)
    return text[: fitting(text, 0, room)] + rest if room > 0 else rest[: max(width, 0)]


def brief_rows(text: str, width: int, most: int, rest: str = "…") -> list[str]:
    """:returns: the text in at most so many rows; ``rest`` marks the cut at the end of the last one."""
    parts = list(wrap(text, width))
    return parts if len(parts) <= most else [*parts[: most - 1], cut(" ".join(parts[most - 1 :]), width, rest)]


def cut_left(text: str, width: int, rest: str = "…") -> str:
    """:returns: the text, cut at its beginning to at most ``width`` columns: the end of a path says more."""
    if cells(text) <= width:
        return text
    while text and cells(text) > width - cells(rest):
        text = text[1:]
    return (rest + text) if width > 0 else ""


def pad(text: str, width: int) -> str:
    """:returns: the text, padded or cut to ``width`` columns."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown))


def clip(line: Line, width: int) -> Line:
    """:returns: the line, cut to ``width`` columns."""
    spans, room = [], width
    for span in line:
        shown = cut(span.text, room)
        spans.append(Span(shown, span.style))
        room -= cells(shown)
    return tuple(span for span in spans if span.text)


def fold(line: Line, width: int) -> list[Line]:
    """
    Wrap a line at spaces, keeping its indentation. A word that is too long, such as a path, is not split, so that it
    can be copied.
    """
    text = unstyled(line)
    return _rows(line, width, len(text) - len(text.lstrip(" ")), True)


def rows(line: Line, width: int, indent: int = 0) -> list[Line]:
    """
    Break a line at spaces, and words that are too long where the row ends.

    :param width: columns of a row.
    :param indent: columns that are left free before the second row and those that follow.
    """
    return _rows(line, width, indent, False)


def _rows(line: Line, width: int, indent: int, whole_words: bool) -> list[Line]:
    indent = min(indent, width // 2)
    return [_part(line, start, end, indent) for start, end in _breaks(unstyled(line), width, indent, whole_words)]


def shortened(lines: Sequence[Line], most: int, note: Line) -> list[Line]:
    """:returns: at most so many lines; if there are more, ``note`` is the last one."""
    return list(lines) if len(lines) <= most else [*lines[: max(most - 1, 0)], note][:most]


def items(parts: Sequence[Line], width: int, gap: str = "   ") -> list[Line]:
    """:returns: parts side by side, none of them broken unless it is wider than a row."""
    found: list[Line] = []
    for part in parts:
        size = cells(unstyled(part))
        if found and cells(unstyled(found[-1])) + len(gap) + size <= width:
            found[-1] = (*found[-1], Span(gap), *part)
        else:
            found.append(clip(part, width))
    return found


def indented(lines: list[Line], first: Line) -> list[Line]:
    """:returns: lines behind ``first``, the later ones below the first one."""
    margin = Span(" " * cells(unstyled(first)))
    return [(*(first if index == 0 else (margin,)), *line) for index, line in enumerate(lines)]


def _part(line: Line, start: int, end: int, indent: int) -> Line:
    parts, offset = [Span(" " * indent)] if start and indent else [], 0
    for span in line:
        text = span.text[max(start - offset, 0) : max(end - offset, 0)]
        offset += len(span.text)
        if text:
            parts.append(Span(text, span.style))
    return tuple(parts)
