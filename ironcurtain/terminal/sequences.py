"""
Escape sequences in a program's output: where they end, what is left without them, which of them only change what is
seen, and those after which a terminal is as a program found it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SEQUENCE_LIMIT = 4096
"""Most bytes of a sequence that has not ended, before it no longer counts as one."""

_CONTROL_SEQUENCE = r"\x1b\[(?P<parameters>[\x30-\x3f]*)(?P<between>[\x20-\x2f]*)(?P<final>[\x40-\x7e])"
_STRING_BEGIN = r"\x1b[\]PX^_]"  # OSC, DCS, SOS, PM, APC
_OTHER = r"\x1b(?P<escape>[\x20-\x2f]+[\x30-\x7e]|[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e])"

SEQUENCE = re.compile(
    rf"{_CONTROL_SEQUENCE}|{_STRING_BEGIN}[^\x07\x18\x1b]*(?:\x07|\x18|\x1b\\|(?=\x1b.))|{_OTHER}".encode(), re.DOTALL
)
"""ECMA-48, sections 5.3 to 5.6; strings may also end in BEL, as xterm has it."""

_STRING_INTRODUCERS = (b"]", b"P", b"X", b"^", b"_")
_BACKSPACES = re.compile("[^\n\b]\b")
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def unfinished(data: bytes) -> bytes:
    """:returns: the beginning of a sequence or character at the end of ``data``; empty if it ends between two."""
    start = data.rfind(b"\x1b")
    if start >= 0 and start == len(data) - 1:
        string = data.rfind(b"\x1b", 0, start)  # its end may be cut in two
        if string >= 0 and data.startswith(_STRING_INTRODUCERS, string + 1) and not SEQUENCE.match(data, string):
            start = string
    if start >= 0 and len(data) - start <= SEQUENCE_LIMIT and not SEQUENCE.match(data, start):
        return data[start:]
    return partial_character(data)


def partial_character(data: bytes) -> bytes:
    """:returns: the beginning of a character in UTF-8 at the end of ``data``, if there is one."""
    for size in range(1, min(3, len(data)) + 1):
        byte = data[-size]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[-size:] if size < wanted and 0xC2 <= byte <= 0xF4 else b""
        if byte < 0x80:
            break
    return b""


def plain(data: bytes) -> str:
    """:returns: the text that is left when sequences are taken out. Where the cursor went is not followed."""
    text = SEQUENCE.sub(b"", data).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _NO_TEXT.sub("", _BACKSPACES.sub("", text))


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


SHOWN_SEQUENCE_LIMIT = 256
"""Most characters of a sequence that has not ended and is still waited for (real ones have at most 60)."""

FRESH = (RESTORE + CLEAR).decode()
"""Makes a terminal as a new one is, empty."""

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    rf"|{_CONTROL_SEQUENCE}|(?P<string>{_STRING_BEGIN})|{_OTHER}"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)

_UNFINISHED = re.compile(r"\x1b(?:\[[\x30-\x3f]*)?[\x20-\x2f]*")
_STRING_END = re.compile(r"[\x07\x18\x1a\x9c]|\x1b\\|(?=\x1b.)", re.DOTALL)
_HUGE = re.compile(r"\d{5,}")

_CONTROLS = frozenset("\a\b\t\n\v\f\r\x0e\x0f")
_FINALS = frozenset("@ABCDEFGHILMPSXZ`abdefgm")
"""Control sequences without anything between: cursor, erasing, inserting, deleting, scrolling, tabs, colours."""

_ESCAPES = frozenset(("7", "8", "D", "E", "H", "M", "#3", "#4", "#5", "#6", "#8", "(0", "(A", "(B", ")0", ")A", ")B"))
_MODES = frozenset(("4", "20"))
_PRIVATE_MODES = frozenset(("5", "6", "7", "12", "25", "47", "1047", "1048", "1049"))
"""Reverse video, origin, wrapping, cursor, other screen (xterm's ctlseqs)."""


class SequenceReader:
    """
    Takes output apart into text, control characters and whole sequences, as it comes. Strings (OSC, DCS and the like)
    are passed over, and so is a sequence that does not end within :data:`SHOWN_SEQUENCE_LIMIT`.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._in_string = False

    def feed(self, output: str) -> Iterator[re.Match[str]]:
        """
        :param output: as it came, cut anywhere.
        :returns: matches whose last group is ``text``, ``control``, ``escape`` or ``final``. Read all of them.
        """
        data, self._rest = self._rest + output, ""
        at = 0
        while at < len(data):
            if self._in_string:
                at = self._pass_string(data, at)
            elif match := _TOKEN.match(data, at):
                at = match.end()
                if match.lastgroup == "string":
                    self._in_string = True
                else:
                    yield match
            elif _UNFINISHED.fullmatch(data, at) and len(data) - at <= SHOWN_SEQUENCE_LIMIT:
                self._rest = data[at:]
                return
            else:
                at += 1  # an escape character that begins nothing

    def _pass_string(self, data: str, at: int) -> int:
        if end := _STRING_END.search(data, at):
            self._in_string = False
            return end.end()
        if data.endswith("\x1b"):  # its end may be cut in two
            self._rest = "\x1b"
        return len(data)


class Appearance:
    """
    Filters output for a terminal at which the program does not run. What comes out only changes what is seen, holds
    only sequences from a list of known ones, and none that has not ended.

    Everything else in a stream is for the program's own terminal: questions, whose answers would be typed into whatever
    runs at this one; the clipboard, the title, the palette, the printer; modes of keyboard and mouse; notifications.

    :param columns: of the terminal for which the output was made, as are ``rows``; the cursor stays inside, and what
        scrolls is only that part.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._reader = SequenceReader()

    def begin(self) -> str:
        """:returns: what empties the terminal, before anything else is shown."""
        return f"{FRESH}{self._margins()}"

    def resize(self, columns: int, rows: int) -> str:
        """
        The output is for another size from now on.

        :returns: what is to be shown.
        """
        self._columns, self._rows = columns, rows
        return f"\x1b7{self._margins()}\x1b8"

    def feed(self, output: str) -> str:
        """
        :param output: as it came, cut anywhere.
        :returns: what may be shown of it.
        """
        return "".join(map(self._allowed, self._reader.feed(output)))

    def _allowed(self, match: re.Match[str]) -> str:
        kind, whole = match.lastgroup, match[0]
        if kind == "text":
            return whole
        if kind == "control":
            return whole if whole in _CONTROLS else ""
        if kind == "escape":
            return self.begin() if match["escape"] == "c" else whole if match["escape"] in _ESCAPES else ""
        parameters = _HUGE.sub("9999", match["parameters"])
        return self._control_sequence(parameters, match["between"] + match["final"])

    def _control_sequence(self, parameters: str, final: str) -> str:
        if parameters[:1] == "?":
            return self._modes("?", parameters[1:], _PRIVATE_MODES, final) if final in ("h", "l") else ""
        if not all(c in "0123456789;:" for c in parameters):
            return ""
        if final in ("H", "f", "d", "G", "`", "r"):
            return self._inside(parameters, final)
        if final in ("h", "l"):
            return self._modes("", parameters, _MODES, final)
        if final == "!p":
            return f"\x1b[!p\x1b7{self._margins()}\x1b8"
        fits = {
            "J": parameters
            in ("", "0", "1", "2"),  # 3 would remove lines that scrolled off, which are the person's own
            "K": parameters in ("", "0", "1", "2"),
            "T": parameters.isdigit() or not parameters,  # more of them would begin to follow the mouse
            "s": not parameters,
            "u": not parameters,
            " q": True,
        }
        return f"\x1b[{parameters}{final}" if final in _FINALS or fits.get(final, False) else ""

    def _modes(self, mark: str, parameters: str, known: frozenset[str], final: str) -> str:
        kept = [mode for mode in parameters.split(";") if mode in known]
        return f"\x1b[{mark}{';'.join(kept)}{final}" if kept else ""

    def _inside(self, parameters: str, final: str) -> str:
        given = parameters.split(";")
        if len(given) > 2 or not all(number.isdigit() or not number for number in given):
            return ""
        first, second = (int(number or 0) for number in (*given, "")[:2])
        if final == "r":
            top, bottom = first or 1, min(second or self._rows, self._rows)
            return f"\x1b[{top};{bottom}r" if top < bottom else ""
        if final in ("H", "f"):
            return f"\x1b[{min(first or 1, self._rows)};{min(second or 1, self._columns)}{final}"
        return f"\x1b[{min(first or 1, self._rows if final == 'd' else self._columns)}{final}"

    def _margins(self) -> str:
        return f"\x1b[1;{self._rows}r" if self._rows > 1 else ""
