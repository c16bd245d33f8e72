"""A screen model that is exact: a terminal emulator is fed what the viewers are, and says how to draw what it has."""

from __future__ import annotations

from contextlib import closing

from pyghostty import GhosttyError  # type: ignore[import-untyped, unused-ignore]

from ironcurtain.terminal.ghostty import Emulator, Part
from ironcurtain.terminal.ghostty_cells import draw_cells
from ironcurtain.terminal.model import sane_size
from ironcurtain.terminal.restore import CLEAR, PLAIN, RESTORE
from ironcurtain.terminal.sequences import partial_character

TITLE_LIMIT = 200
"""Most bytes of a window's title that are set anew."""

_OFF_BY_DEFAULT = (1, 5, 9, 45, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1039, 1045, 2004, 2031, 2048, 5522)
_ON_BY_DEFAULT = (7, 25, 1007, 1035, 1036)
"""Private modes (xterm's ctlseqs) that stay as they are until a program changes them."""

_LAST = (2026,)
"""Held-back output: the terminal shows nothing until it is switched off."""


class GhosttyScreen:
    """
    What one sees who was there all the time, for those who come late.

    :raises pyghostty.GhosttyError: from any method, if the library fails.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._emulator = Emulator(*sane_size(columns, rows))
        self._rest = b""

    @property
    def between(self) -> bool:
        """Whether the output is between two sequences."""
        return not self._rest and self._emulator.between

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere."""
        data = self._rest + data
        self._rest = partial_character(data)  # a copy of the emulator could not be brought out of its middle
        self._emulator.feed(data[: len(data) - len(self._rest)])

    def resize(self, columns: int, rows: int) -> None:
        """Have another size; lines are wrapped afresh, as terminals do."""
        self._emulator.resize(*sane_size(columns, rows))

    def redraw(self, columns: int, rows: int, history: bool = False) -> bytes:
        """
        Everything from scratch: both screens, modes, cursor, and the beginning of a sequence that is under way.

        A viewer with a smaller screen sees the lines wrapped to it until the size is its own.
        """
        size, own = sane_size(columns, rows), self._emulator.size
        smaller = size[0] < own[0] or size[1] < own[1]
        try:
            drawn = self._smaller(size) if smaller else _drawn(self._emulator, history and size == own)
        except GhosttyError:
            drawn = draw_cells(self._emulator) + self._emulator.draw(
                Part.CURSOR
            )  # a picture is under way, so that there can be no copies
        return RESTORE + CLEAR + drawn + self._emulator.unfinished() + self._rest

    def _smaller(self, size: tuple[int, int]) -> bytes:
        with closing(self._emulator.copy()) as shown:
            shown.resize(*size)
            return _drawn(shown, False)

    def text(self) -> str:
        """:returns: lines that scrolled off, the screen, and the alternate screen where that is shown."""
        shown = str(self._emulator.contents())
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
    parts += [draw_cells(shown), shown.draw(Part.CURSOR), _modes(shown)]
    return b"".join(parts)


def _primary(below: Emulator, history: bool, switch: int) -> bytes:
    """
    :param below: its alternate screen is left here.
    :returns: what draws the primary screen.
    """
    _to_primary(below)
    saved = b"" if switch == 1049 else _saved_cursor_of(below)  # 1049 itself saves it
    cursor = below.draw(Part.CURSOR, modes=False)
    return b"".join((saved, _history(below, history), draw_cells(below), cursor, _shape(below)))


def _title(shown: Emulator) -> bytes:
    text = bytes(byte for byte in shown.title[:TITLE_LIMIT] if 0x20 <= byte != 0x7F).decode("utf-8", "ignore")
    return b"\x1b]2;%b\x1b\\" % text.encode() if text else b""


def _history(shown: Emulator, wanted: bool) -> bytes:
    """:returns: what draws the lines that have scrolled off, and scrolls them off again."""
    if not wanted or not shown.history_rows:
        return b""
    rows: int = shown.size[1]
    return shown.draw(Part.HISTORY, modes=False) + PLAIN + b"\r\n" * rows + CLEAR


def _saved_cursor(other: Emulator) -> bytes:
    """
    :param other: its cursor is moved; with 1049, that of the screen below is not.
    :returns: what puts the saved cursor where it is saved, and leaves the screen empty.
    """
    other.feed(b"\x1b8")
    return other.draw(Part.CURSOR, modes=False) + b"\x1b7" + CLEAR


def _saved_cursor_of(shown: Emulator) -> bytes:
    """:returns: the same, with nothing moved."""
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
    """:returns: what puts the cursor where it is when lines count from the upper margin."""
    column, row = shown.cursor
    with closing(shown.copy()) as at_home:
        at_home.feed(b"\x1b[H")
        left, top = at_home.cursor
    return b"\x1b[%d;%dH" % (row - top + 1, column - left + 1)
