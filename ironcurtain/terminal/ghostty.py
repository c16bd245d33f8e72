"""libghostty-vt, a terminal emulator without a screen, through pyghostty: the few calls that a screen model needs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from sys import byteorder
from typing import Any

from pyghostty.core import (  # type: ignore[import-untyped, unused-ignore]
    GhosttyError,
    check,
    ffi,
    init_sized,
    lib,
    union_fn,
)

from ironcurtain.terminal.ghostty_cells import Row, read_rows, value_of
from ironcurtain.terminal.sequences import ABORT

HISTORY_BYTES = 2_000_000
"""
Most memory for lines that have scrolled off: some 700 of 200 columns, 1800 of 80.

The library could count lines too, but beyond a number of them it gives memory back and takes it again with every few
lines, which makes all output cost three to four times as much; beyond this it uses the oldest memory anew.
"""

HISTORY_LINES = 2**63 - 1
"""Most lines: more than there are ever."""

CONTINUATION_BYTES = 1024 * 1024
"""Most bytes that are kept of a sequence that has not ended: pictures are the longest."""

_SETTINGS: tuple[tuple[int, str, int], ...] = (
    (lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, "size_t*", HISTORY_BYTES),
    (lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_LINES, "size_t*", HISTORY_LINES),
    (lib.GHOSTTY_TERMINAL_OPT_CONTINUATION_MAX_BYTES, "size_t*", CONTINUATION_BYTES),
    # Pictures are neither kept nor fetched: a program could name any of our files as one.
    (lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_STORAGE_LIMIT, "uint64_t*", 0),
    (lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_MEDIUM_FILE, "bool*", 0),
    (lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_MEDIUM_SHARED_MEM, "bool*", 0),
    (lib.GHOSTTY_TERMINAL_OPT_APC_MAX_BYTES, "size_t*", 4096),
    (lib.GHOSTTY_TERMINAL_OPT_CLIPBOARD_WRITE_MAX_BYTES, "size_t*", 4096),
)

_STYLE, _POINT, _PLACE = (ffi.new(name) for name in ("GhosttyStyle*", "GhosttyPointS*", "GhosttyGridRef*"))
"""Used again and again, for one cell at a time."""

_STYLE.size, _PLACE.size = ffi.sizeof("GhosttyStyle"), ffi.sizeof("GhosttyGridRef")
_POINT_TAGS = {name: getattr(lib, f"GHOSTTY_POINT_TAG_{name}") for name in ("ACTIVE", "HISTORY", "SCREEN")}
_grid_ref = union_fn("ghostty_terminal_grid_ref", "GhosttyResult(*)(GhosttyTerminal, GhosttyPointS, GhosttyGridRef*)")

CELL_PIXELS = 8, 16
"""Width and height of a cell, which only programs hear that ask; a terminal has to have some."""

_SCREEN_PARTS = ("cursor", "style", "hyperlink", "protection", "kitty_keyboard", "charsets")


class DrawnPart(Enum):
    """What of a terminal is drawn."""

    HISTORY = "history"
    """The lines that have scrolled off; there must be some."""

    CURSOR = "cursor"
    """Where it is, and how it writes; and one cell, since the library draws no less."""


class Emulator:
    """
    A terminal. ``pyghostty.Terminal`` is one as well, but hides what copying and drawing need of it.

    Its answers to a program's questions go nowhere.

    :raises GhosttyError: from any method, if the library fails: no memory, or a size of zero.
    """

    def __init__(self, columns: int, rows: int) -> None:
        made = ffi.new("GhosttyTerminal*")
        check(lib.ghostty_terminal_new(ffi.NULL, made, columns, rows), "terminal")
        self._own(made[0])
        for option, kind, value in _SETTINGS:
            check(lib.ghostty_terminal_set(self._handle, option, ffi.new(kind, value)), "set")

    def _own(self, handle: Any) -> None:
        self._handle, self._free = handle, weakref.finalize(self, lib.ghostty_terminal_free, handle)

    def close(self) -> None:
        """Give its memory back now, and not only when nobody knows this any more. It cannot be used then."""
        self._free()
        self._handle = None

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere."""
        lib.ghostty_terminal_vt_write(self._handle, data, len(data))

    def resize(self, columns: int, rows: int) -> None:
        """Have another size; lines are wrapped afresh."""
        check(lib.ghostty_terminal_resize(self._handle, columns, rows, *CELL_PIXELS), "resize")

    def get(self, key: str, kind: str = "uint16_t") -> Any:
        """
        :param key: the end of a name that begins with ``GHOSTTY_TERMINAL_DATA_``, in any case.
        :returns: what the library says of it.
        """
        target = ffi.new(f"{kind}*")
        check(lib.ghostty_terminal_get(self._handle, getattr(lib, f"GHOSTTY_TERMINAL_DATA_{key.upper()}"), target), key)
        return target[0]

    def mode(self, number: int, ansi: bool = False) -> bool:
        """
        :param ansi: whether it is one of ECMA-48's, and not a private one.
        :returns: whether a mode is set.
        """
        asked = ffi.new("GhosttyTerminalModeConfig*")
        asked.mode = number | ansi << 15  # as ghostty_mode_new does it, which is a macro
        check(lib.ghostty_terminal_get(self._handle, lib.GHOSTTY_TERMINAL_DATA_MODE, asked), "mode")
        return bool(asked.value)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self.get("cols"), self.get("rows")

    @property
    def cursor(self) -> tuple[int, int]:
        """Its column and row, from 0."""
        return self.get("cursor_x"), self.get("cursor_y")

    def copy(self) -> Emulator:
        """
        :returns: another one with the same contents, state and history, but between two sequences.
        :raises GhosttyError: the output is in the middle of a sequence that is too long to be kept.
        """
        data = _fill(lambda *target: lib.ghostty_snapshot_encode_buf(self._handle, *target))
        source = ffi.from_buffer("uint8_t[]", data)
        decoder, made = ffi.new("GhosttySnapshotDecoder*"), ffi.new("GhosttyTerminal*")
        check(lib.ghostty_snapshot_decoder_new_buf(ffi.NULL, decoder, source, len(data)), "snapshot")
        try:
            check(lib.ghostty_snapshot_decoder_decode(decoder[0], made), "snapshot")
        finally:
            lib.ghostty_snapshot_decoder_free(decoder[0])
        twin = Emulator.__new__(Emulator)
        twin._own(made[0])
        twin.feed(ABORT)
        return twin

    def draw(self, part: DrawnPart, modes: bool = True) -> bytes:
        """
        :param modes: with margins, tab stops and keyboard modes.
        :returns: what draws that part, on the screen that is shown now.
        """
        options = init_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        options.unwrap = part is DrawnPart.HISTORY  # of a line that is inserted into a wrapped one it would lose a row
        extra = options.extra
        extra.scrolling_region = extra.tabstops = extra.keyboard = modes
        for name in _SCREEN_PARTS:
            setattr(extra.screen, name, part is not DrawnPart.HISTORY)
        selection = init_sized("GhosttySelection")
        if part is DrawnPart.HISTORY:
            selection.start = self.place(0, 0, "HISTORY")[0]
            selection.end = self.place(self.size[0] - 1, self.history_rows - 1, "HISTORY")[0]
        else:
            selection.start = selection.end = self.place(0, 0)[0]
        options.selection = selection
        formatter = ffi.new("GhosttyFormatter*")
        check(lib.ghostty_formatter_terminal_new(ffi.NULL, formatter, self._handle, options[0]), "formatter")
        try:
            drawn = _fill(lambda *target: lib.ghostty_formatter_format_buf(formatter[0], *target))
        finally:
            lib.ghostty_formatter_free(formatter[0])
        return drawn if part is DrawnPart.HISTORY else b"\x1b[H" + drawn  # where that one cell is

    @property
    def history_rows(self) -> int:
        """How many lines are kept that have scrolled off."""
        return int(self.get("scrollback_rows", "size_t"))

    def contents(self) -> str:
        """:returns: the text that has scrolled off and is shown, without blanks round it; wrapped lines are joined."""
        selection = init_sized("GhosttySelection")
        return self._text(selection) if not lib.ghostty_terminal_select_all(self._handle, selection) else ""

    def history_and_screen(self) -> tuple[str, str]:
        """
        :returns: the text that has scrolled off, and the text that is shown, without blanks at line ends. Rows over
            which the terminal wrapped a line are joined, so that the first text may end, and the second begin, within a
            line.
        """
        screen = self._plain("ACTIVE")
        if not self.history_rows:
            return "", screen
        text = self._plain("SCREEN")
        return (text.removesuffix(screen), screen) if screen else (f"{text}\n", "")

    def _plain(self, start: str) -> str:
        columns, rows = self.size
        selection = init_sized("GhosttySelection")
        selection.start = self.place(0, 0, start)[0]
        selection.end = self.place(columns - 1, rows - 1)[0]
        return self._text(selection)

    def _text(self, selection: Any) -> str:
        options = init_sized("GhosttyTerminalSelectionFormatOptions")
        options.emit, options.selection = lib.GHOSTTY_FORMATTER_FORMAT_PLAIN, selection
        options.unwrap = options.trim = True
        text = _fill(lambda *target: lib.ghostty_terminal_selection_format_buf(self._handle, options[0], *target))
        return text.decode()

    def unfinished(self) -> bytes:
        """:returns: the beginning of the sequence that the output is in the middle of, if it is not too long."""
        if self.between:
            return b""
        try:
            return _fill(lambda *target: lib.ghostty_terminal_continuation_buf(self._handle, *target))
        except GhosttyError:
            return b""

    @property
    def between(self) -> bool:
        """Whether the output is between two sequences."""
        return bool(self.get("vt_ground", "bool"))

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        return bool(self.get("active_screen", "GhosttyTerminalScreen") == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    @property
    def title(self) -> bytes:
        """The window's title."""
        found = self.get("title", "GhosttyString")
        return bytes(ffi.buffer(found.ptr, found.len)) if found.len else b""

    def cursor_shape(self) -> int:
        """:returns: its number in DECSCUSR; 0: as the terminal has it by itself."""
        with self._rendered() as state:
            shape = value_of(lib.ghostty_render_state_get, state, "CURSOR_VISUAL_STYLE", "int*")
        return _SHAPES.get((shape, self.mode(12)), 0)

    def rows(self) -> Iterator[Row]:
        """:returns: the lines of the screen that is shown, from its top."""
        with self._rendered() as state:
            yield from read_rows(state)

    def style_at(self, column: int, row: int) -> bytes:
        """:returns: the library's record of a cell's style: see :func:`style_record`."""
        check(lib.ghostty_grid_ref_style(self.place(column, row), _STYLE), "style")
        return bytes(ffi.buffer(_STYLE))

    def letters(self, column: int, row: int) -> str:
        """:returns: the character of a cell that has combining ones, with them."""
        place = self.place(column, row)
        codes = _fill(lambda *target: lib.ghostty_grid_ref_graphemes(place, *target), "uint32_t[]")
        return codes.decode("utf-32-le" if byteorder == "little" else "utf-32-be")

    def link(self, column: int, row: int) -> bytes:
        """:returns: where the link of a cell that has one leads."""
        place = self.place(column, row)
        return _fill(lambda *target: lib.ghostty_grid_ref_hyperlink_uri(place, *target))

    def place(self, column: int, row: int, within: str = "ACTIVE") -> Any:
        """
        :param within: the library's: ``ACTIVE``: the screen; ``HISTORY``: what has scrolled off; ``SCREEN``: both.
        :returns: the library's pointer to a cell: good until the next call, as is what it points at until the terminal
            changes.
        """
        _POINT.tag = _POINT_TAGS[within]
        _POINT.value.x, _POINT.value.y = column, row
        check(_grid_ref(self._handle, _POINT[0], _PLACE), "cell")
        return _PLACE

    @contextmanager
    def _rendered(self) -> Iterator[Any]:
        state = ffi.new("GhosttyRenderState*")
        check(lib.ghostty_render_state_new(ffi.NULL, state), "render state")
        try:
            check(lib.ghostty_render_state_update(state[0], self._handle), "render state")
            yield state[0]
        finally:
            lib.ghostty_render_state_free(state[0])


_BLOCK, _UNDERLINE, _BAR = (
    getattr(lib, f"GHOSTTY_TERMINAL_CURSOR_STYLE_{name}") for name in ("BLOCK", "UNDERLINE", "BAR")
)
_SHAPES = {(_BLOCK, True): 1, (_UNDERLINE, True): 3, (_UNDERLINE, False): 4, (_BAR, True): 5, (_BAR, False): 6}


def _fill(call: Callable[..., int], kind: str = "uint8_t[]") -> bytes:
    """:param call: gets a buffer, its size, and where to say how much of it was used, or would be."""
    used = ffi.new("size_t*")
    call(ffi.NULL, 0, used)
    buffer = ffi.new(kind, max(used[0], 1))
    check(call(buffer, len(buffer), used), "buffer")
    return bytes(ffi.buffer(buffer)[: used[0] * ffi.sizeof(buffer) // len(buffer)])
