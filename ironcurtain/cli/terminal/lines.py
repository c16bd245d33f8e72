"""What is shown, before any terminal sees it: lines of styled text. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from ironcurtain.text.columns import Columns, Line, Span, plain


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The signs that a terminal may lack."""

    done: str = "✓"
    failed: str = "✗"
    active: str = "●"
    idle: str = "○"
    prompt: str = "> "
    dot: str = " · "
    top: str = "╭ "
    side: str = "│ "
    bottom: str = "╰ "
    rest: str = "…"


UNICODE = Glyphs()
ASCII = Glyphs("ok", "x", "*", "-", "> ", ", ", "+ ", "| ", "+ ", "...")


def glyphs_for(encoding: str) -> Glyphs:
    """:returns: the signs that an encoding has."""
    try:
        "".join(getattr(UNICODE, name) for name in UNICODE.__slots__).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def representable(text: str, encoding: str) -> str:
    """:returns: the text with escapes in place of what an encoding lacks, so that nothing is lost unseen."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.replace("…", "...")
        return text.encode(encoding, "backslashreplace").decode(encoding)
    return text


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


COLUMNS = Columns(_width)
"""How a terminal shows text: wide characters take two columns, combining ones none."""

cells, wrap = COLUMNS.cells, COLUMNS.wrap


def cut(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """:returns: the text, shortened at its end to at most ``width`` columns."""
    if cells(text) <= width:
        return text
    room = max(width - cells(glyphs.rest), 0)
    return next(wrap(text, room)) + glyphs.rest if room > 1 else glyphs.rest[:width]


def fold(line: Line, width: int) -> Iterator[Line]:
    """
    Break a line at spaces; what follows is indented as the line is. A word that is too long, such as a path, is left
    for the terminal to break, so that it can be copied.
    """
    text = plain(line)
    indent = min(len(text) - len(text.lstrip(" ")), width // 2)
    start = 0
    while (end := _fitting(text, start, width if start == 0 else width - indent)) < len(text):
        space = text.rfind(" ", start, end + 1)
        if not text[start:space].strip(" ") or space < 0:
            space = text.find(" ", end)
        if space < 0:
            break
        yield _part(line, start, space, indent)
        start = space + 1
    yield _part(line, start, len(text), indent)


def _part(line: Line, start: int, end: int, indent: int) -> Line:
    parts, offset = [Span(" " * indent)] if start and indent else [], 0
    for span in line:
        text = span.text[max(start - offset, 0) : max(end - offset, 0)]
        offset += len(span.text)
        if text:
            parts.append(Span(text, span.style))
    return tuple(parts)


def _fitting(text: str, start: int, width: int) -> int:
    """:returns: the end of the longest part from ``start`` that fits; at least one character."""
    return min(max(COLUMNS.fitting(text, start, width), start + 1), len(text))
