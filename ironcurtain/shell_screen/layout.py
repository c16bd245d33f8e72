"""Styled lines broken into rows of a terminal, none of them wider than it may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironcurtain.shell_screen.look import Look
from ironcurtain.text.columns import Line, Span, cells, clip, fitting, unstyled


def rows(line: Line, width: int, indent: int = 0) -> list[Line]:
    """
    Break a line at spaces, and words that are too long where the row ends.

    :param width: columns of a row.
    :param indent: columns that are left free before the second row and those that follow.
    """
    text = unstyled(line)
    indent = min(indent, width // 2)
    found: list[Line] = []
    start = 0
    while True:
        room = max(width - (indent if found else 0), 2)
        end = fitting(text, start, room)
        if end < len(text):
            space = text.rfind(" ", start + 1, end + 1)
            end = space if space - start > room // 4 else max(end, start + 1)
        margin = (Span(" " * indent),) if found and indent else ()
        found.append((*margin, *_part(line, start, end)))
        start = end + (text[end : end + 1] == " ")
        if start >= len(text):
            return found


def command_rows(command: str, width: int, look: Look) -> list[Line]:
    """
    A command exactly as it is: each row that ends without a line end has a sign at its end.

    :param width: columns of a row.
    """
    found: list[Line] = []
    for line in look.text(command).split("\n"):
        found += [
            (Span(part, "bold"), *((Span(sign, "dim"),) if sign else ())) for part, sign in _cut(line, width, look)
        ]
    return found


def _cut(line: str, width: int, look: Look) -> Iterator[tuple[str, str]]:
    width = max(width, 4)
    while cells(line) > width:
        end = max(fitting(line, 0, width - 1), 1)
        space = line.rfind(" ", 0, end) + 1
        end = space if space > end // 4 else end
        yield line[:end], look.signs.continued
        line = line[end:]
    yield line, ""


def shortened(lines: list[Line], most: int, note: Line) -> list[Line]:
    """:returns: at most so many lines; if there are more, ``note`` is the last one."""
    return lines if len(lines) <= most else [*lines[: max(most - 1, 0)], note][:most]


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


def _part(line: Line, start: int, end: int) -> Line:
    parts, offset = [], 0
    for span in line:
        text = span.text[max(start - offset, 0) : max(end - offset, 0)]
        offset += len(span.text)
        if text:
            parts.append(Span(text, span.style))
    return tuple(parts)
