"""The cells of a screen of libghostty-vt."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from ironcurtain.terminal.ghostty_library import check, ffi, lib


def style_record(data: bytes) -> Any:
    """:returns: a record of :meth:`~ironcurtain.terminal.ghostty.Emulator.style_at`, as the library's structure."""
    return ffi.from_buffer("GhosttyStyle*", data)


class Width(Enum):
    """Whether a cell's character spans two cells."""

    NARROW = lib.GHOSTTY_CELL_WIDE_NARROW
    WIDE = lib.GHOSTTY_CELL_WIDE_WIDE
    TAIL = lib.GHOSTTY_CELL_WIDE_SPACER_TAIL
    """The second half of a wide character."""

    HEAD = lib.GHOSTTY_CELL_WIDE_SPACER_HEAD
    """An empty cell at a line's end, where a wide character did not fit."""


class CellStyle(NamedTuple):
    """
    The properties of a cell that neighbours can share.

    :param background: SGR parameters of a cell that has only a background colour.
    :param style: the number of the style, unique within a line.
    :param simple: whether it is one character with a width of one cell in all terminals.
    """

    background: bytes
    style: int
    linked: bool
    protected: bool
    simple: bool


class Cell(NamedTuple):
    """
    One cell of the screen.

    :param letter: its character; empty if nothing was written there.
    :param shown: the character, or a space.
    :param combined: whether it has combining characters; see
        :meth:`~ironcurtain.terminal.ghostty.Emulator.letters`.
    """

    letter: str
    shown: str
    combined: bool
    width: Width
    look: CellStyle

    @property
    def empty(self) -> bool:
        """Whether it looks like a cell that was never written."""
        look = self.look
        return not (self.letter or look.background or look.style) and self.width is Width.NARROW


class Row(NamedTuple):
    """
    One row.

    :param wraps: whether the next row continues the same line.
    """

    cells: list[Cell]
    wraps: bool


def read_rows(state: Any) -> Iterator[Row]:
    """:returns: the rows of a rendered screen, from the top."""
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
    "int[]",
    [
        getattr(lib, f"GHOSTTY_CELL_DATA_{key}")
        for key in ("CONTENT_TAG", "CODEPOINT", "WIDE", "STYLE_ID", "HAS_HYPERLINK", "PROTECTED")
    ],
)
_CELL_FIELDS = [ffi.new(kind) for kind in ("int*", "uint32_t*", "int*", "uint16_t*", "bool*", "bool*")]
_CELL_TARGETS = ffi.new("void*[]", _CELL_FIELDS)
"""The fields of a cell that one call reads, and where it stores them."""


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
