"""What output has changed in a terminal that outlives the program, so that only that is taken back at the end."""

from __future__ import annotations

import re

from ironcurtain.terminal.sequences import ABORT, RESTORE, unfinished

_LATER = re.compile(
    rb"\x1b\[(?P<parameters>[0-?]*)(?P<final>[hlrug]| q)"
    rb"|\x1b\[>4(?:;(?P<keys>[0-9]*))?m"
    rb"|\x1b\]8;[^;\x07\x1b]*;(?P<link>[^\x07\x1b]*)"
    rb"|\x1b\](?P<colour>4|5|1[0-9]);(?P<specification>[^\x07\x1b]*)"
    rb"|\x1b(?P<set>[()])(?P<characters>[ -~])"
    rb"|\x1b(?P<escape>[=>Hc])"
    rb"|(?P<shift>[\x0e\x0f])"
)
_STYLE = re.compile(rb"\x1b\[([0-9;:]*)m")
_RESET = b"\x1bc"

_OFF = frozenset((b"1", b"5", b"6", b"9", b"45", b"47", b"66", b"69", b"1045", b"1047", b"1049")) | frozenset(
    b"%d" % mode for mode in (1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048, 5522)
)
"""Private modes that are off at first."""

_ON = frozenset((b"7", b"25"))
"""Those that are on: wrapping, the cursor."""

_PLAIN = b"\x1b[0m"
_MARGINS, _TABS = b"\x1b7\x1b[r\x1b8", b"\x1b[?5W"
_KEYS_OFF = b"\x1b[>4m"
_KEYS, _OTHER_KEYS = b"\x1b[<99u", b"\x1b[>4;0m"
_CURSOR, _KEYPAD = b"\x1b[0 q", b"\x1b>"
_LINK, _SHIFT = b"\x1b]8;;\x1b\\", b"\x0f"


class TerminalChanges:
    """
    Follows all that is written to a terminal, cut anywhere.

    :param colours: whether the terminal's own colours count, which users set for good.
    """

    def __init__(self, colours: bool = False) -> None:
        self._colours = colours
        self._rest = b""
        self._undo: dict[bytes, bytes] = {}
        """What takes a change back, by what was changed."""

    def feed(self, data: bytes) -> None:
        """:param data: more output."""
        if data == RESTORE:
            self._undo.clear()
        data = self._rest + data
        self._rest = unfinished(data)
        if b"\x1b" not in data and b"\x0e" not in data and b"\x0f" not in data:
            return
        for match in _LATER.finditer(data, 0, len(data) - len(self._rest)):
            if match[0] == _RESET:
                self._undo.clear()
            elif match["keys"] is not None or match[0] == _KEYS_OFF:
                self._note(b"keys", (match["keys"] or b"0").strip(b"0") != b"", _OTHER_KEYS)
            elif match["final"] is not None:
                self._control(match["parameters"], match["final"])
            elif match["link"] is not None:
                self._note(b"link", bool(match["link"]), _LINK)
            elif match["colour"] is not None:
                self._colour(match["colour"], match["specification"])
            elif match["set"] is not None:
                self._note(match["set"], match["characters"] != b"B", b"\x1b" + match["set"] + b"B")
            elif match["escape"] == b"H":
                self._note(b"tabs", True, _TABS)
            elif match["escape"] is not None:
                self._note(b"keypad", match["escape"] == b"=", _KEYPAD)
            else:
                self._note(b"shift", match["shift"] == b"\x0e", _SHIFT)
        self._style(data)

    def restoration(self) -> bytes:
        """:returns: what brings the terminal back to how it was, as far as it was changed; each change is its own."""
        cut = ABORT if self._rest else b""
        self._rest = b""
        restoration = cut + b"".join(reversed(self._undo.values()))
        self._undo.clear()
        return restoration

    def _style(self, data: bytes) -> None:
        """Only the last of its colours counts, and they are most of what programs send."""
        at = data.rfind(b"\x1b[")
        while at >= 0:
            if style := _STYLE.match(data, at):
                self._note(b"style", style[1].rpartition(b";")[2].strip(b"0") != b"", _PLAIN)
                return
            at = data.rfind(b"\x1b[", 0, at)

    def _control(self, parameters: bytes, final: bytes) -> None:
        if final in (b"h", b"l"):
            private, on = parameters.startswith(b"?"), final == b"h"
            for mode in parameters.lstrip(b"?").split(b";"):
                self._mode(mode, private, on)
        elif final == b"u" and parameters[:1] in (b">", b"="):
            self._note(b"flags", True, _KEYS)
        elif final == b"u" and parameters.startswith(b"<"):
            self._note(b"flags", False, _KEYS)
        elif final == b" q":
            self._note(b"cursor", parameters not in (b"", b"0"), _CURSOR)
        elif final == b"r" and not parameters.startswith(b"?"):
            self._note(b"margins", parameters != b"", _MARGINS)
        elif final == b"g":
            self._note(b"tabs", True, _TABS)

    def _colour(self, number: bytes, specification: bytes) -> None:
        if self._colours and not specification.endswith(b"?"):  # else it asks for it
            self._note(b"colour" + number, True, b"\x1b]1%02d\x1b\\" % int(number))

    def _mode(self, mode: bytes, private: bool, on: bool) -> None:
        if private and mode in _OFF | _ON:
            self._note(b"?" + mode, on != (mode in _ON), b"\x1b[?%b%b" % (mode, b"h" if mode in _ON else b"l"))
        elif not private and mode in (b"4", b"20"):
            self._note(mode, on, b"\x1b[%bl" % mode)

    def _note(self, what: bytes, changed: bool, undo: bytes) -> None:
        self._undo.pop(what, None)
        if changed:
            self._undo[what] = undo
