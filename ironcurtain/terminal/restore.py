"""The bytes after which a terminal is as a program found it."""

from __future__ import annotations

ABORT = b"\x18\x1b\\"
"""Ends whatever sequence a terminal is in the middle of: CAN, then ST (ECMA-48, 8.3.6 and 8.3.143)."""

_MOUSE_AND_REPORTS = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048, 5522)
"""Private modes that make a terminal send more than keys (xterm's ctlseqs), or hold back what it shows (2026)."""

_APPEARANCE = (5, 45, 69, 1045)
"""Reverse video, reverse wraparound, left and right margins: some terminals leave them on a soft reset."""

PLAIN = b'\x1b[0m\x1b[0"q\x1b]8;;\x1b\\\x1b(B\x1b)B\x0f'
"""From here on text is just text: no colours, no protection, no link, no other character set."""


def _off(modes: tuple[int, ...]) -> bytes:
    return b"".join(b"\x1b[?%dl" % mode for mode in modes)


RESTORE = b"".join(
    (
        ABORT,
        b"\x1b[<99u",  # the keyboard flags of this screen; each screen has a stack of its own
        # Leaving restores the cursor, also if there was nothing to leave: some terminals then take what the last
        # entering saved. So this enters first, which changes nothing where a program left its own screen on.
        b"\x1b7\x1b[?1049h\x1b[?1049l\x1b[?1047l\x1b[?47l",
        b"\x1b[<99u",
        b"\x1b[!p",  # soft reset: moves no cursor and clears nothing
        b"\x1b[4l\x1b[20l",  # insert mode stays in some terminals
        b"\x1b7\x1b[r\x1b8",  # margins; that alone would move the cursor
        b"\x1b[?5W",  # tab stops
        _off(_APPEARANCE),
        _off(_MOUSE_AND_REPORTS),
        b"\x1b[>4;0m",  # xterm's modifyOtherKeys
        b"\x1b[?1l\x1b>",  # cursor keys and keypad
        b"\x1b[0 q\x1b[?7h\x1b[?25h",
        PLAIN,
    )
)
"""
Brings any terminal back from what a program may have left: alternate screen, modes, colours, keyboard.

Text and cursor stay where they are; therefore origin mode (DECOM) is left to the soft reset, which not all terminals
have: switching it off by itself moves the cursor. Terminals ignore what they do not know.
"""

CLEAR = b"\x1b[?6l" + PLAIN + b"\x1b[H\x1b[J"
"""After :data:`RESTORE`: an empty screen with the cursor at its top."""
