"""The exact screen model: a terminal emulator that processes the same output as viewers, and generates redraws."""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from ironcurtain.terminal.ghostty import DrawnPart, Emulator
from ironcurtain.terminal.ghostty_cells import Cell, Row, Width, style_record
from ironcurtain.terminal.ghostty_library import GhosttyError, lib
from ironcurtain.terminal.model import sane_size
from ironcurtain.terminal.sequences import CLEAR, PLAIN, RESTORE, partial_character

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
"""SGR parameters: none, single, double, curly, dotted, dashed."""


def draw_cells(terminal: Emulator) -> bytes:
    """:returns: the output that draws the active screen on an empty one, and resets the style."""
    parts, above = [PLAIN], None
    for number, row in enumerate(terminal.rows()):
        if drawn := _Line(terminal, number, row).draw():
            parts += [b"" if above and _goes_on(above, row) else b"\x1b[%dH" % (number + 1), drawn]
        above = row
    return b"".join(parts) + PLAIN


def _goes_on(above: Row, row: Row) -> bool:
    """Whether the cursor moves to this line on its own after drawing the line above."""
    first, last = row.cells[0], above.cells[-1]
    filled = bool(last.letter) or last.width is Width.TAIL
    return above.wraps and bool(first.letter) and (filled or (last.width, first.width) == (Width.HEAD, Width.WIDE))


class _Line:
    """Draws one line, from its first column on."""

    def __init__(self, terminal: Emulator, number: int, row: Row) -> None:
        self._terminal, self._number, self._cells = terminal, number, row.cells
        self._styles: dict[int, bytes] = {0: b""}

    def draw(self) -> bytes:
        """:returns: the output; empty for an empty line."""
        column, parts = 0, []
        for _, run in groupby(self._cells[: self._end()], attrgetter("look")):
            cells = list(run)
            parts.append(self._run(column, cells))
            column += len(cells)
        return b"".join(parts)

    def _end(self) -> int:
        """:returns: the column from which on all cells are empty."""
        end = len(self._cells)
        while end and self._cells[end - 1].empty:
            end -= 1
        return end

    def _run(self, column: int, cells: list[Cell]) -> bytes:
        look = cells[0].look
        if look.background:
            return b"\x1b[0;%bm\x1b[%dX\x1b[%dC\x1b[0m" % (look.background, len(cells), len(cells))
        if all(cell.empty for cell in cells):  # blanks would become text
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
        return letter.encode() + b"\x1b[%dG" % (after + 1)  # terminals differ in the widths of characters

    def _style(self, column: int, style: int) -> bytes:
        if style not in self._styles:
            self._styles[style] = _parameters(self._terminal.style_at(column, self._number))
        return self._styles[style]


@lru_cache(4096)
def _parameters(record: bytes) -> bytes:
    """:returns: the SGR parameters."""
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


TITLE_LIMIT = 200
"""Maximum length in bytes of a restored window title."""

_OFF_BY_DEFAULT = (1, 5, 9, 45, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1039, 1045, 2004, 2031, 2048, 5522)
_ON_BY_DEFAULT = (7, 25, 1007, 1035, 1036)
"""Private modes (xterm's ctlseqs) that persist until a program changes them."""

_LAST = (2026,)
"""Synchronized output: the terminal shows nothing until it is disabled."""


class GhosttyScreen:
    """
    Generates redraws for viewers that attach late, identical to what earlier viewers see.

    :raises GhosttyError: from any method, if the library fails.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._emulator = Emulator(*sane_size(columns, rows))
        self._rest = b""

    @property
    def between(self) -> bool:
        """Whether the output does not end in an incomplete sequence."""
        return not self._rest and self._emulator.between

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere."""
        data = self._rest + data
        self._rest = partial_character(data)  # a copy of the emulator cannot be taken in the middle of a sequence
        self._emulator.feed(data[: len(data) - len(self._rest)])

    def resize(self, columns: int, rows: int) -> None:
        """Set the size; lines are rewrapped, as terminals do."""
        self._emulator.resize(*sane_size(columns, rows))

    def redraw(self, columns: int, rows: int, history: bool = False) -> bytes:
        """
        A complete redraw: both screens, modes, cursor, and an incomplete sequence.

        A viewer with a smaller screen sees the lines wrapped to it until it has the same size.
        """
        size, own = sane_size(columns, rows), self._emulator.size
        smaller = size[0] < own[0] or size[1] < own[1]
        try:
            drawn = self._smaller(size) if smaller else _drawn(self._emulator, history and size == own)
        except GhosttyError:
            drawn = draw_cells(self._emulator) + self._emulator.draw(
                DrawnPart.CURSOR
            )  # a picture is incomplete, so the emulator cannot be copied
        return RESTORE + CLEAR + drawn + self._emulator.unfinished() + self._rest

    def _smaller(self, size: tuple[int, int]) -> bytes:
        with closing(self._emulator.copy()) as shown:
            shown.resize(*size)
            return _drawn(shown, False)

    def text(self) -> str:
        """:returns: scrollback, screen, and the alternate screen if it is active."""
        shown = self._emulator.contents()
        if not self._emulator.alternate:
            return shown
        try:
            with closing(self._emulator.copy()) as other:
                _to_primary(other)
                return f"{other.contents()}\n{shown}"
        except GhosttyError:
            return shown


def _to_primary(emulator: Emulator) -> None:
    emulator.feed(b"\x1b[?1049l" if emulator.mode(1049) else b"\x1b[?1047l\x1b[?47l")


def _drawn(shown: Emulator, history: bool) -> bytes:
    parts = [_title(shown)]
    with closing(shown.copy()) as other:
        if shown.alternate:
            switch = next(number for number in (1049, 1047, 47) if number == 47 or shown.mode(number))
            saved = _saved_cursor(other) if switch == 1049 else _saved_cursor_of(shown)
            parts += [_primary(other, history, switch), b"\x1b[?%dh" % switch, CLEAR]
        else:
            saved = _saved_cursor(other)
            parts.append(_history(shown, history))
    parts += [b"\x1b[?69h" if shown.mode(69) else b"", saved]
    parts += [draw_cells(shown), shown.draw(DrawnPart.CURSOR), _modes(shown)]
    return b"".join(parts)


def _primary(below: Emulator, history: bool, switch: int) -> bytes:
    """
    :param below: the emulator; it is switched from the alternate screen.
    :returns: the output that draws the primary screen.
    """
    _to_primary(below)
    saved = b"" if switch == 1049 else _saved_cursor_of(below)  # 1049 itself saves it
    cursor = below.draw(DrawnPart.CURSOR, modes=False)
    return b"".join((saved, _history(below, history), draw_cells(below), cursor, _shape(below)))


def _title(shown: Emulator) -> bytes:
    text = bytes(byte for byte in shown.title[:TITLE_LIMIT] if 0x20 <= byte != 0x7F).decode("utf-8", "ignore")
    return b"\x1b]2;%b\x1b\\" % text.encode() if text else b""


def _history(shown: Emulator, wanted: bool) -> bytes:
    """:returns: the output that draws the scrollback and scrolls it off."""
    if not wanted or not shown.history_rows:
        return b""
    return shown.draw(DrawnPart.HISTORY, modes=False) + PLAIN + b"\r\n" * shown.size[1] + CLEAR


def _saved_cursor(other: Emulator) -> bytes:
    """
    :param other: an emulator whose cursor is moved; with 1049, not that of the primary screen.
    :returns: the output that restores the saved cursor, and leaves the screen empty.
    """
    other.feed(b"\x1b8")
    return other.draw(DrawnPart.CURSOR, modes=False) + b"\x1b7" + CLEAR


def _saved_cursor_of(shown: Emulator) -> bytes:
    """:returns: the same, without moving the cursor."""
    with closing(shown.copy()) as other:
        return _saved_cursor(other)


def _modes(shown: Emulator) -> bytes:
    parts = [b"\x1b[4h" * shown.mode(4, ansi=True), b"\x1b[20h" * shown.mode(20, ansi=True), _shape(shown)]
    if shown.mode(6):
        parts.append(b"\x1b[?6h" + _relative_cursor(shown))
    parts += [b"\x1b[?%dh" % number for number in _OFF_BY_DEFAULT if shown.mode(number)]
    parts += [b"\x1b[?%dl" % number for number in _ON_BY_DEFAULT if not shown.mode(number)]
    parts += [b"\x1b[?%dh" % number for number in _LAST if shown.mode(number)]
    return b"".join(parts)


def _shape(shown: Emulator) -> bytes:
    return b"\x1b[%d q" % shown.cursor_shape()


def _relative_cursor(shown: Emulator) -> bytes:
    """:returns: the output that moves the cursor to its place in origin mode."""
    column, row = shown.cursor
    with closing(shown.copy()) as at_home:
        at_home.feed(b"\x1b[H")
        left, top = at_home.cursor
    return b"\x1b[%d;%dH" % (row - top + 1, column - left + 1)
