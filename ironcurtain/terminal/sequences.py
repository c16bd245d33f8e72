"""
Escape sequences in a program's output: find their ends, remove them, keep those that only change the picture, and
restore a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SEQUENCE_LIMIT = 4096
"""Maximum length in bytes of an incomplete sequence; a longer one is not a sequence."""

PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
"""Marks around pasted text in bracketed paste mode (xterm's ctlseqs)."""

_CONTROL_SEQUENCE = r"\x1b\[(?P<parameters>[\x30-\x3f]*)(?P<between>[\x20-\x2f]*)(?P<final>[\x40-\x7e])"
_STRING_BEGIN = r"\x1b[\]PX^_]"  # OSC, DCS, SOS, PM, APC
_OTHER = r"\x1b(?P<escape>[\x20-\x2f]+[\x30-\x7e]|[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e])"

SEQUENCE = re.compile(
    rf"{_CONTROL_SEQUENCE}|{_STRING_BEGIN}[^\x07\x18\x1b]*(?:\x07|\x18|\x1b\\|(?=\x1b.))|{_OTHER}".encode(), re.DOTALL
)
"""ECMA-48, sections 5.3 to 5.6; strings may also end in BEL, as in xterm."""

_STRING_INTRODUCERS = (b"]", b"P", b"X", b"^", b"_")
_BACKSPACES = re.compile("[^\n\b]\b")
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def unfinished(data: bytes) -> bytes:
    """:returns: the incomplete sequence or character at the end of ``data``; empty if there is none."""
    start = data.rfind(b"\x1b")
    if start >= 0 and start == len(data) - 1:
        string = data.rfind(b"\x1b", 0, start)  # its end may be split
        if string >= 0 and data.startswith(_STRING_INTRODUCERS, string + 1) and not SEQUENCE.match(data, string):
            start = string
    if start >= 0 and len(data) - start <= SEQUENCE_LIMIT and not SEQUENCE.match(data, start):
        return data[start:]
    return partial_character(data)


def partial_character(data: bytes) -> bytes:
    """:returns: the incomplete UTF-8 character at the end of ``data``, if there is one."""
    for size in range(1, min(3, len(data)) + 1):
        byte = data[-size]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[-size:] if size < wanted and 0xC2 <= byte <= 0xF4 else b""
        if byte < 0x80:
            break
    return b""


def plain(data: bytes) -> str:
    """:returns: the text without sequences. Cursor movements are ignored."""
    text = SEQUENCE.sub(b"", data).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _NO_TEXT.sub("", _BACKSPACES.sub("", text))


ABORT = b"\x18\x1b\\"
"""Ends any incomplete sequence: CAN, then ST (ECMA-48, 8.3.6 and 8.3.143)."""

_MOUSE_AND_REPORTS = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048, 5522)
"""Private modes that make a terminal send more than keys (xterm's ctlseqs), or delay its output (2026)."""

_APPEARANCE = (5, 45, 69, 1045)
"""Reverse video, reverse wraparound, left and right margins: some terminals keep them on a soft reset."""

PLAIN = b'\x1b[0m\x1b[0"q\x1b]8;;\x1b\\\x1b(B\x1b)B\x0f'
"""Resets the text style: no colours, no protection, no link, no other character set."""


def _off(modes: tuple[int, ...]) -> bytes:
    return b"".join(b"\x1b[?%dl" % mode for mode in modes)


RESTORE = b"".join(
    (
        ABORT,
        b"\x1b[<99u",  # the keyboard flags of this screen; each screen has its own stack
        # Leaving restores the cursor even without entering before: some terminals then use the cursor saved by the last
        # entering. So this enters first, which has no effect if a program left the alternate screen on.
        b"\x1b7\x1b[?1049h\x1b[<99u\x1b[?1049l\x1b[?1047l\x1b[?47l",
        b"\x1b[<99u",
        b"\x1b[!p",  # soft reset: moves no cursor and clears nothing
        b"\x1b[4l\x1b[20l",  # some terminals keep insert mode
        b"\x1b7\x1b[r\x1b8",  # margins; on its own it moves the cursor
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
Restores any terminal after a program: alternate screen, modes, colours, keyboard.

Text and cursor are not changed. Therefore origin mode (DECOM) is left to the soft reset, which not all terminals
support: disabling it separately moves the cursor. Terminals ignore unknown sequences.
"""

CLEAR = b"\x1b[?6l" + PLAIN + b"\x1b[H\x1b[J"
"""To use after :data:`RESTORE`: an empty screen with the cursor at its top."""


SHOWN_SEQUENCE_LIMIT = 256
"""Maximum length in characters of an incomplete sequence (real ones have at most 60)."""

FRESH = (RESTORE + CLEAR).decode()
"""Resets a terminal completely."""

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
"""Control sequences without intermediate bytes: cursor, erasing, inserting, deleting, scrolling, tabs, colours."""

_ESCAPES = frozenset(("7", "8", "D", "E", "H", "M", "#3", "#4", "#5", "#6", "#8", "(0", "(A", "(B", ")0", ")A", ")B"))
_MODES = frozenset(("4", "20"))
_PRIVATE_MODES = frozenset(("5", "6", "7", "12", "25", "47", "1047", "1048", "1049"))
"""Reverse video, origin, wrapping, cursor, alternate screen (xterm's ctlseqs)."""


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
    Filters output for a terminal on which the program does not run. The result only changes the picture: it has only
    sequences from a list, and no incomplete ones.

    Other sequences are for the program's own terminal: queries, whose answers would become input for the program at
    this terminal; the clipboard, the title, the palette, the printer; keyboard and mouse modes; notifications.

    :param columns: size of the terminal for which the output was made, with ``rows``; the cursor stays within it, and
        only that part scrolls.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._reader = SequenceReader()

    def begin(self) -> str:
        """:returns: output that clears the terminal, to show first."""
        return f"{FRESH}{self._margins()}"

    def resize(self, columns: int, rows: int) -> str:
        """
        From now on, the output is for another size.

        :returns: the output to show.
        """
        self._columns, self._rows = columns, rows
        return f"\x1b7{self._margins()}\x1b8"

    def feed(self, output: str) -> str:
        """
        :param output: unchanged, split anywhere.
        :returns: the output to show.
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
            "J": parameters in ("", "0", "1", "2"),  # 3 would remove the scrollback, which is the person's own
            "K": parameters in ("", "0", "1", "2"),
            "T": parameters.isdigit() or not parameters,  # some of the others would make the terminal report the mouse
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
