"""The calls of libghostty-vt, a terminal emulator without a display, that a screen model needs. Uses pyghostty."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import lru_cache
from sys import byteorder
from typing import Any, NamedTuple

import pyghostty  # type: ignore[import-untyped, unused-ignore]
from pyghostty.core import check, ffi, init_sized, lib, union_fn  # type: ignore[import-untyped, unused-ignore]

from ironcurtain.terminal.sequences import ABORT

HISTORY_BYTES = 2_000_000
"""
Maximum memory in bytes for scrollback: some 700 lines of 200 columns, or 1800 of 80.

The library can also limit the number of lines, but then it frees and allocates memory every few lines, which makes
output three to four times slower. At this limit it reuses the oldest memory.
"""

HISTORY_LINES = 2**63 - 1
"""A number of lines that scrollback never reaches."""

CONTINUATION_BYTES = 1024 * 1024
"""Maximum bytes kept of an incomplete sequence (pictures are the longest)."""

_SETTINGS: tuple[tuple[int, str, int], ...] = (
    (lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, "size_t*", HISTORY_BYTES),
    (lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_LINES, "size_t*", HISTORY_LINES),
    (lib.GHOSTTY_TERMINAL_OPT_CONTINUATION_MAX_BYTES, "size_t*", CONTINUATION_BYTES),
    # Pictures are disabled: a program could name any file of this process as one.
    (lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_STORAGE_LIMIT, "uint64_t*", 0),
    (lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_MEDIUM_FILE, "bool*", 0),
    (lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_MEDIUM_SHARED_MEM, "bool*", 0),
    (lib.GHOSTTY_TERMINAL_OPT_APC_MAX_BYTES, "size_t*", 4096),
    (lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE_MAX_BYTES, "size_t*", 4096),
)

_STYLE, _POINT, _PLACE = (ffi.new(name) for name in ("GhosttyStyle*", "GhosttyPointS*", "GhosttyGridRef*"))
"""Reused for each cell."""

_STYLE.size, _PLACE.size = ffi.sizeof("GhosttyStyle"), ffi.sizeof("GhosttyGridRef")
_POINT.tag = lib.GHOSTTY_POINT_TAG_ACTIVE
_grid_ref = union_fn("ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)")

_SCREEN_PARTS = ("cursor", "style", "hyperlink", "protection", "kitty_keyboard", "charsets")


class DrawnPart(Enum):
    """Parts of a terminal to draw."""

    HISTORY = "history"
    """The scrollback, which must not be empty."""

    CURSOR = "cursor"
    """The cursor's position and style, with one cell, since the library draws at least one."""


class Emulator(pyghostty.Terminal):  # type: ignore[misc, unused-ignore]  # the library has no types
    """
    A terminal emulator. It does not answer a program's queries.

    :raises pyghostty.GhosttyError: no memory, or a size of zero.
    """

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__(columns, rows)
        for option, kind, value in _SETTINGS:
            check(lib.ghostty_terminal_set(self._t[0], option, ffi.new(kind, value)), "set")

    def copy(self) -> Emulator:
        """
        :returns: a copy with the same contents, state and scrollback, but not in the middle of a sequence.
        :raises pyghostty.GhosttyError: the output ends in a sequence that is too long to be kept.
        """
        data = _fill(lambda *target: lib.ghostty_snapshot_encode_buf(self._t[0], *target))
        source = ffi.from_buffer("uint8_t[]", data)
        decoder, made = ffi.new("GhosttySnapshotDecoder*"), ffi.new("GhosttyTerminal*")
        check(lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, source, len(data)), "snapshot")
        try:
            check(lib.ghostty_snapshot_decoder_decode(decoder[0], made), "snapshot")
        finally:
            lib.ghostty_snapshot_decoder_free(decoder[0])
        twin: Emulator = Emulator.__new__(Emulator)
        twin._t, twin._unknown_cb, twin._reply_cb, twin._cb_err = made, None, None, None
        twin._free = weakref.finalize(twin, lib.ghostty_terminal_free, made[0])
        twin.feed(ABORT)
        return twin

    def draw(self, part: DrawnPart, modes: bool = True) -> bytes:
        """
        :param modes: with margins, tab stops and keyboard modes.
        :returns: the output that draws that part on the active screen.
        """
        options = init_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        options.unwrap = part is DrawnPart.HISTORY  # it would lose a row of a line that is inserted into a wrapped one
        extra = options.extra
        extra.scrolling_region = extra.tabstops = extra.keyboard = modes
        for name in _SCREEN_PARTS:
            setattr(extra.screen, name, part is not DrawnPart.HISTORY)
        selection = init_sized("GhosttySelection")
        if part is DrawnPart.HISTORY:
            end = self.ref(self.size[0] - 1, self.history_rows - 1, "history")
            selection.start, selection.end = self.ref(0, 0, "history")[0], end[0]
        else:
            selection.start = selection.end = self.ref(0, 0)[0]
        options.selection = selection
        formatter = ffi.new("GhosttyFormatter*")
        check(lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._t[0], options[0]), "formatter")
        try:
            drawn = _fill(lambda *target: lib.ghostty_formatter_format_buf(formatter[0], *target))
        finally:
            lib.ghostty_formatter_free(formatter[0])
        return drawn if part is DrawnPart.HISTORY else b"\x1b[H" + drawn  # the position of that one cell

    @property
    def history_rows(self) -> int:
        """Number of lines in the scrollback."""
        return int(self.get("scrollback_rows", "size_t"))

    def history_and_screen(self) -> tuple[str, str]:
        """
        :returns: the text of the scrollback and that of the screen, without trailing blanks. The rows of a wrapped line
            are joined, so the first text may end within a line that the second continues.
        """
        screen = self._plain("active")
        if not self.history_rows:
            return "", screen
        text = self._plain("screen")
        return (text.removesuffix(screen), screen) if screen else (f"{text}\n", "")

    def _plain(self, tag: str) -> str:
        """:param tag: the library's name: ``active`` for the screen, ``screen`` for screen and scrollback."""
        columns, rows = self.size
        options, selection = init_sized("GhosttyTerminalSelectionFormatOptions"), init_sized("GhosttySelection")
        selection.start, selection.end = self.ref(0, 0, tag)[0], self.ref(columns - 1, rows - 1)[0]
        options.emit, options.selection = lib.GHOSTTY_FORMATTER_FORMAT_PLAIN, selection
        options.unwrap = options.trim = True
        text = _fill(lambda *target: lib.ghostty_terminal_selection_format_buf(self._t[0], options[0], *target))
        return text.decode()

    def unfinished(self) -> bytes:
        """:returns: the incomplete sequence at the end of the output, if it is not too long."""
        if self.between:
            return b""
        try:
            return _fill(lambda *target: lib.ghostty_terminal_continuation_buf(self._t[0], *target))
        except pyghostty.GhosttyError:
            return b""

    @property
    def between(self) -> bool:
        """Whether the output does not end in an incomplete sequence."""
        return bool(self.get("vt_ground", "bool"))

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is active."""
        return bool(self.get("active_screen", "GhosttyTerminalScreen") == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    @property
    def title(self) -> bytes:
        """The window's title."""
        found = self.get("title", "GhosttyString")
        return bytes(ffi.buffer(found.ptr, found.len)) if found.len else b""

    def cursor_shape(self) -> int:
        """:returns: its number in DECSCUSR; 0: the terminal's default."""
        with self._rendered() as state:
            shape = _get(lib.ghostty_render_state_get, state, "CURSOR_VISUAL_STYLE", "int*")
        return _SHAPES.get((shape, self.mode(12)), 0)

    def rows(self) -> Iterator[Row]:
        """:returns: the lines of the active screen, from the top."""
        with self._rendered() as state:
            iterator = ffi.new("GhosttyRenderStateRowIterator*")
            check(lib.ghostty_render_state_row_iterator_new(ffi.NULL, iterator), "row iterator")
            try:
                which = lib.GHOSTTY_RENDER_STATE_DATA_ROW_ITERATOR
                check(lib.ghostty_render_state_get(state, which, iterator), "rows")
                while lib.ghostty_render_state_row_iterator_next(iterator[0]):
                    yield _row(iterator[0])
            finally:
                lib.ghostty_render_state_row_iterator_free(iterator[0])

    def style_at(self, column: int, row: int) -> bytes:
        """:returns: the library's record of a cell's style: see :func:`style_record`."""
        check(lib.ghostty_grid_ref_style(self._place(column, row), _STYLE), "style")
        return bytes(ffi.buffer(_STYLE))

    def letters(self, column: int, row: int) -> str:
        """:returns: a cell's character with its combining characters."""
        place = self._place(column, row)
        codes = _fill(lambda *target: lib.ghostty_grid_ref_graphemes(place, *target), "uint32_t[]")
        return codes.decode("utf-32-le" if byteorder == "little" else "utf-32-be")

    def link(self, column: int, row: int) -> bytes:
        """:returns: the target of a cell's hyperlink."""
        place = self._place(column, row)
        return _fill(lambda *target: lib.ghostty_grid_ref_hyperlink_uri(place, *target))

    def _place(self, column: int, row: int) -> Any:
        """:returns: the same as :meth:`ref`, ten times as fast; valid until the next call."""
        _POINT.value.x, _POINT.value.y = column, row
        check(_grid_ref(self._t[0], _POINT[0], _PLACE), "cell")
        return _PLACE

    @contextmanager
    def _rendered(self) -> Iterator[Any]:
        state = ffi.new("GhosttyRenderState*")
        check(lib.ghostty_render_state_new(ffi.NULL, state), "render state")
        try:
            check(lib.ghostty_render_state_update(state[0], self._t[0]), "render state")
            yield state[0]
        finally:
            lib.ghostty_render_state_free(state[0])


def style_record(data: bytes) -> Any:
    """:returns: a record of :meth:`Emulator.style_at`, as the library's structure."""
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
    :param combined: whether it has combining characters; see :meth:`Emulator.letters`.
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


def _row(iterator: Any) -> Row:
    view = _get(lib.ghostty_render_state_row_get, iterator, "CELLS_RAW", "GhosttyCellsView*")
    packed = _get(lib.ghostty_render_state_row_get, iterator, "RAW", "GhosttyRow*")
    wraps: bool = _get(lib.ghostty_row_get, packed, "WRAP", "bool*")
    return Row([_cell(cell) for cell in ffi.unpack(view.ptr, view.len)], wraps)


@lru_cache(32768)
def _cell(packed: int) -> Cell:
    check(lib.ghostty_cell_get_multi(packed, len(_CELL_FIELDS), _CELL_KEYS, _CELL_TARGETS, ffi.NULL), "cell")
    tag, number, wide, style, linked, protected = [field[0] for field in _CELL_FIELDS]
    background = b""
    if tag == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
        background = b"48;5;%d" % _get(lib.ghostty_cell_get, packed, "COLOR_PALETTE", "uint8_t*")
    elif tag == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
        colour = _get(lib.ghostty_cell_get, packed, "COLOR_RGB", "GhosttyColorRgb*")
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
"""The fields of a cell that one call reads, and where it stores them."""


def _get(function: Any, source: Any, key: str, kind: str) -> Any:
    target = ffi.new(kind)
    check(function(source, getattr(lib, _KEYS[function] + key), target), key)
    return target[0]


_KEYS = {
    lib.ghostty_render_state_get: "GHOSTTY_RENDER_STATE_DATA_",
    lib.ghostty_render_state_row_get: "GHOSTTY_RENDER_STATE_ROW_DATA_",
    lib.ghostty_row_get: "GHOSTTY_ROW_DATA_",
    lib.ghostty_cell_get: "GHOSTTY_CELL_DATA_",
}

_BLOCK, _UNDERLINE, _BAR = (
    getattr(lib, f"GHOSTTY_TERMINAL_CURSOR_STYLE_{name}") for name in ("BLOCK", "UNDERLINE", "BAR")
)
_SHAPES = {(_BLOCK, True): 1, (_UNDERLINE, True): 3, (_UNDERLINE, False): 4, (_BAR, True): 5, (_BAR, False): 6}


def _fill(call: Callable[..., int], kind: str = "uint8_t[]") -> bytes:
    """:param call: called with a buffer, its size, and a place for the number of bytes used or needed."""
    used = ffi.new("size_t*")
    call(ffi.NULL, 0, used)
    buffer = ffi.new(kind, max(used[0], 1))
    check(call(buffer, len(buffer), used), "buffer")
    return bytes(ffi.buffer(buffer)[: used[0] * ffi.sizeof(buffer) // len(buffer)])
