"""
Draw what a terminal emulator shows, cell by cell.

The library can do that too, but leaves out lines that are nothing but their background, and gives empty cells the style
of what stands before them.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from pyghostty.core import lib  # type: ignore[import-untyped, unused-ignore]

from ironcurtain.terminal.ghostty import Cell, Emulator, Row, Width, style_record
from ironcurtain.terminal.restore import PLAIN

_ATTRIBUTES = {
    "bold": b"1",
    "faint": b"2",
    "italic": b"3",
    "blink": b"5",
    "inverse": b"7",
    "invisible": b"8",
    "strikethrough": b"9",
    "overline": b"53",
}

_UNDERLINES = (b"", b"4", b"21", b"4:3", b"4:4", b"4:5")
"""None, single, double, curly, dotted, dashed."""


def draw_cells(terminal: Emulator) -> bytes:
    """:returns: what draws the screen that is shown now on an empty one, and writes plainly then."""
    parts, above = [PLAIN], None
    for number, row in enumerate(terminal.rows()):
        if drawn := _Line(terminal, number, row).draw():
            parts += [b"" if above and _goes_on(above, row) else b"\x1b[%dH" % (number + 1), drawn]
        above = row
    return b"".join(parts) + PLAIN


def _goes_on(above: Row, row: Row) -> bool:
    """Whether the terminal comes to this line by itself when the one above has been drawn."""
    first, last = row.cells[0], above.cells[-1]
    filled = bool(last.letter) or last.width is Width.TAIL
    return above.wraps and bool(first.letter) and (filled or (last.width, first.width) == (Width.HEAD, Width.WIDE))


class _Line:
    """Draws one line, from its first column on."""

    def __init__(self, terminal: Emulator, number: int, row: Row) -> None:
        self._terminal, self._number, self._cells = terminal, number, row.cells
        self._styles: dict[int, bytes] = {0: b""}

    def draw(self) -> bytes:
        """:returns: nothing, if the line is empty."""
        column, parts = 0, []
        for _, run in groupby(self._cells[: self._end()], attrgetter("look")):
            cells = list(run)
            parts.append(self._run(column, cells))
            column += len(cells)
        return b"".join(parts)

    def _end(self) -> int:
        """:returns: where only empty places follow."""
        end = len(self._cells)
        while end and self._cells[end - 1].empty:
            end -= 1
        return end

    def _run(self, column: int, cells: list[Cell]) -> bytes:
        look = cells[0].look
        if look.background:
            return b"\x1b[0;%bm\x1b[%dX\x1b[%dC\x1b[0m" % (look.background, len(cells), len(cells))
        if all(cell.empty for cell in cells):  # blanks would be text
            return b"\x1b[%dC" % len(cells)
        style = self._style(column, look.style)
        before, after = (b"\x1b[0;%bm" % style, b"\x1b[0m") if style else (b"", b"")
        if look.protected:
            before, after = before + b'\x1b[1"q', after + b'\x1b[0"q'
        return before + (self._linked if look.linked else self._text)(column, cells) + after

    def _text(self, column: int, cells: list[Cell]) -> bytes:
        if cells[0].look.simple:
            return "".join([cell.shown for cell in cells]).encode()
        return b"".join([self._letter(column + i, cell) for i, cell in enumerate(cells)])

    def _linked(self, column: int, cells: list[Cell]) -> bytes:
        parts = []
        for link, run in groupby(range(len(cells)), lambda i: self._terminal.link(column + i, self._number)):
            places = list(run)
            text = self._text(column + places[0], cells[places[0] : places[-1] + 1])
            parts.append(b"\x1b]8;;%b\x1b\\%b\x1b]8;;\x1b\\" % (link, text))
        return b"".join(parts)

    def _letter(self, column: int, cell: Cell) -> bytes:
        if cell.width is Width.HEAD or (cell.width is Width.TAIL and self._cells[column - 1].width is Width.WIDE):
            return b""
        letter = self._terminal.letters(column, self._number) if cell.combined else cell.shown
        after = column + (2 if cell.width is Width.WIDE else 1)
        if letter.isascii() or after >= len(self._cells):
            return letter.encode()
        return letter.encode() + b"\x1b[%dG" % (after + 1)  # terminals do not agree on how wide letters are

    def _style(self, column: int, style: int) -> bytes:
        if style not in self._styles:
            self._styles[style] = _parameters(self._terminal.style_at(column, self._number))
        return self._styles[style]


@lru_cache(4096)
def _parameters(record: bytes) -> bytes:
    """:returns: those of SGR."""
    style = style_record(record)
    parts = [number for name, number in _ATTRIBUTES.items() if getattr(style, name)]
    if style.underline:
        parts.append(_UNDERLINES[style.underline])
    for colour, number in ((style.fg_color, 38), (style.bg_color, 48), (style.underline_color, 58)):
        if colour.tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
            parts.append(b"%d;5;%d" % (number, colour.value.palette))
        elif colour.tag == lib.GHOSTTY_STYLE_COLOR_RGB:
            rgb = colour.value.rgb
            parts.append(b"%d;2;%d;%d;%d" % (number, rgb.r, rgb.g, rgb.b))
    return b";".join(parts)
