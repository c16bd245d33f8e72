"""What stands on a screen of libghostty-vt, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from pyghostty.core import check, ffi, lib  # type: ignore[import-untyped, unused-ignore]


def style_record(data: bytes) -> Any:
    """:returns: what :meth:`~ironcurtain.terminal.ghostty.Emulator.style_at` gave, with the library's names."""
    return ffi.from_buffer("GhosttyStyle*", data)


class Width(Enum):
    """How a cell shares a character with its neighbour."""

    NARROW = lib.GHOSTTY_CELL_WIDE_NARROW
    WIDE = lib.GHOSTTY_CELL_WIDE_WIDE
    TAIL = lib.GHOSTTY_CELL_WIDE_SPACER_TAIL
    """The second half of a wide one."""

    HEAD = lib.GHOSTTY_CELL_WIDE_SPACER_HEAD
    """Left free at a line's end by a wide one that did not fit."""


class CellStyle(NamedTuple):
    """
    What neighbours may have in common.

    :param background: of a cell that is nothing but that: parameters of SGR.
    :param style: number; the same one means the same in one line.
    :param simple: whether it is one letter that all terminals give one place.
    """

    background: bytes
    style: int
    linked: bool
    protected: bool
    simple: bool


class Cell(NamedTuple):
    """
    One place on the screen.

    :param letter: empty: nothing is written there.
    :param shown: the letter, or a space.
    :param combined: whether more belong to the letter, see :meth:`~ironcurtain.terminal.ghostty.Emulator.letters`.
    """

    letter: str
    shown: str
    combined: bool
    width: Width
    look: CellStyle

    @property
    def empty(self) -> bool:
        """Whether it looks like one that was never written to."""
        look = self.look
        return not (self.letter or look.background or look.style) and self.width is Width.NARROW


class Row(NamedTuple):
    """
    One line.

    :param wraps: whether the next one goes on with it.
    """

    cells: list[Cell]
    wraps: bool


def read_rows(state: Any) -> Iterator[Row]:
    """:returns: the lines of a screen as it was rendered, from its top."""
    iterator = ffi.new("GhosttyRenderStateRowIterator*")
    check(lib.ghostty_render_state_row_iterator_new(ffi.NULL, iterator), "row iterator")
    try:
        check(lib.ghostty_render_state_get(state, lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR, iterator), "rows")
        while lib.ghostty_render_state_row_iterator_next(iterator[0]):
            yield _row(iterator[0])
    finally:
        lib.ghostty_render_state_row_iterator_free(iterator[0])


def _row(iterator: Any) -> Row:
    view = value_of(lib.ghostty_render_state_row_get, iterator, "CELLS_RAW", "GhosttyCellsView*")
    packed = value_of(lib.ghostty_render_state_row_get, iterator, "RAW", "GhosttyRow*")
    wraps: bool = value_of(lib.ghostty_row_get, packed, "WRAP", "bool*")
    return Row([_cell(cell) for cell in ffi.unpack(view.ptr, view.len)], wraps)


@lru_cache(32768)
def _cell(packed: int) -> Cell:
    check(lib.ghostty_cell_get_multi(packed, len(_CELL_FIELDS), _CELL_KEYS, _CELL_TARGETS, ffi.NULL), "cell")
    tag, number, wide, style, linked, protected = [field[0] for field in _CELL_FIELDS]
    background = b""
    if tag == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
        background = b"48;5;%d" % value_of(lib.ghostty_cell_get, packed, "COLOR_PALETTE", "uint8_t*")
    elif tag == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
        colour = value_of(lib.ghostty_cell_get, packed, "COLOR_RGB", "GhosttyColorRgb*")
        background = b"48;2;%d;%d;%d" % (colour.r, colour.g, colour.b)
    combined, width = tag == lib.GHOSTTY_CELL_CONTENT_CODEPOINT_GRAPHEME, _WIDTHS[wide]
    simple = number < 0x80 and not combined and width is Width.NARROW
    look = CellStyle(background, style, linked, protected, simple)
    return Cell(chr(number) if number else "", chr(number or 0x20), combined, width, look)


_WIDTHS = {width.value: width for width in Width}
_CELL_KEYS = ffi.new(
    "GhosttyCellData[]",
    [
        getattr(lib, f"GHOSTTY_CELL_DATA_{key}")
        for key in ("CONTENT_TAG", "CODEPOINT", "WIDE", "STYLE_ID", "HAS_HYPERLINK", "PROTECTED")
    ],
)
_CELL_FIELDS = [
    ffi.new(kind) for kind in ("GhosttyCellContentTag*", "uint32_t*", "GhosttyCellWide*", "uint16_t*", "bool*", "bool*")
]
_CELL_TARGETS = ffi.new("void*[]", _CELL_FIELDS)
"""What is read of each cell, all at once, and where to."""


def value_of(function: Any, source: Any, key: str, kind: str) -> Any:
    """
    :param function: the library's, which takes a source, the number of a key, and where to put the value.
    :param key: the end of its name.
    :returns: the value.
    """
    target = ffi.new(kind)
    check(function(source, getattr(lib, _KEYS[function] + key), target), key)
    return target[0]


_KEYS = {
    lib.ghostty_render_state_get: "GHOSTTY_RENDER_STATE_DATA_",
    lib.ghostty_render_state_row_get: "GHOSTTY_RENDER_STATE_ROW_DATA_",
    lib.ghostty_row_get: "GHOSTTY_ROW_DATA_",
    lib.ghostty_cell_get: "GHOSTTY_CELL_DATA_",
}
