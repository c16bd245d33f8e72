"""The calls of libghostty-vt, a terminal emulator without a display, that a screen model needs. Uses pyghostty."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from sys import byteorder
from typing import Any

from ironcurtain.terminal.ghostty_cells import Row, read_rows, value_of
from ironcurtain.terminal.ghostty_library import GhosttyError, check, ffi, init_sized, lib
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
_POINT_TAGS = {name: getattr(lib, f"GHOSTTY_POINT_TAG_{name}") for name in ("ACTIVE", "HISTORY", "SCREEN")}

CELL_PIXELS = 8, 16
"""Width and height of a cell, which only programs hear that ask; a terminal has to have some."""

_SCREEN_PARTS = ("cursor", "style", "hyperlink", "protection", "kitty_keyboard", "charsets")


class DrawnPart(Enum):
    """Parts of a terminal to draw."""

    HISTORY = "history"
    """The scrollback, which must not be empty."""

    CURSOR = "cursor"
    """The cursor's position and style, with one cell, since the library draws at least one."""


class Emulator:
    """
    A terminal emulator. ``pyghostty.Terminal`` is one as well, but hides what copying and drawing need of it.

    It does not answer a program's queries.

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
        :returns: a copy with the same contents, state and scrollback, but not in the middle of a sequence.
        :raises GhosttyError: the output ends in a sequence that is too long to be kept.
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
        return drawn if part is DrawnPart.HISTORY else b"\x1b[H" + drawn  # the position of that one cell

    @property
    def history_rows(self) -> int:
        """Number of lines in the scrollback."""
        return int(self.get("scrollback_rows", "size_t"))

    def contents(self) -> str:
        """:returns: the text that has scrolled off and is shown, without blanks round it; wrapped lines are joined."""
        selection = init_sized("GhosttySelection")
        return self._text(selection) if not lib.ghostty_terminal_select_all(self._handle, selection) else ""

    def history_and_screen(self) -> tuple[str, str]:
        """
        :returns: the text of the scrollback and that of the screen, without trailing blanks. The rows of a wrapped line
            are joined, so the first text may end within a line that the second continues.
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
        """:returns: the incomplete sequence at the end of the output, if it is not too long."""
        if self.between:
            return b""
        try:
            return _fill(lambda *target: lib.ghostty_terminal_continuation_buf(self._handle, *target))
        except GhosttyError:
            return b""

    @property
    def between(self) -> bool:
        """Whether the output does not end in an incomplete sequence."""
        return bool(self.get("vt_ground", "bool"))

    @property
    def alternate(self) -> bool:
        """Whether the alternate screen is active."""
        return bool(self.get("active_screen", "int") == lib.GHOSTTY_TERMINAL_SCREEN_ALTERNATE)

    @property
    def title(self) -> bytes:
        """The window's title."""
        found = self.get("title", "GhosttyString")
        return bytes(ffi.buffer(found.ptr, found.len)) if found.len else b""

    def cursor_shape(self) -> int:
        """:returns: its number in DECSCUSR; 0: the terminal's default."""
        with self._rendered() as state:
            shape = value_of(lib.ghostty_render_state_get, state, "CURSOR_VISUAL_STYLE", "int*")
        return _SHAPES.get((shape, self.mode(12)), 0)

    def rows(self) -> Iterator[Row]:
        """:returns: the lines of the active screen, from the top."""
        with self._rendered() as state:
            yield from read_rows(state)

    def style_at(self, column: int, row: int) -> bytes:
        """:returns: the library's record of a cell's style: see :func:`style_record`."""
        check(lib.ghostty_grid_ref_style(self.place(column, row), _STYLE), "style")
        return bytes(ffi.buffer(_STYLE))

    def letters(self, column: int, row: int) -> str:
        """:returns: a cell's character with its combining characters."""
        place = self.place(column, row)
        codes = _fill(lambda *target: lib.ghostty_grid_ref_graphemes(place, *target), "uint32_t[]")
        return codes.decode("utf-32-le" if byteorder == "little" else "utf-32-be")

    def link(self, column: int, row: int) -> bytes:
        """:returns: the target of a cell's hyperlink."""
        place = self.place(column, row)
        return _fill(lambda *target: lib.ghostty_grid_ref_hyperlink_uri(place, *target))

    def place(self, column: int, row: int, within: str = "ACTIVE") -> Any:
        """
        :param within: the library's name: ``ACTIVE`` for the screen, ``HISTORY`` for scrollback, ``SCREEN`` for both.
        :returns: the library's pointer to a cell, valid until the next call; its target is valid until the
            terminal changes.
        """
        _POINT.tag = _POINT_TAGS[within]
        _POINT.value.x, _POINT.value.y = column, row
        check(lib.ghostty_terminal_grid_ref(self._handle, _POINT[0], _PLACE), "cell")
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
    """:param call: called with a buffer, its size, and a place for the number of bytes used or needed."""
    used = ffi.new("size_t*")
    call(ffi.NULL, 0, used)
    buffer = ffi.new(kind, max(used[0], 1))
    check(call(buffer, len(buffer), used), "buffer")
    return bytes(ffi.buffer(buffer)[: used[0] * ffi.sizeof(buffer) // len(buffer)])
