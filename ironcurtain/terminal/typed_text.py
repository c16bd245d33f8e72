"""
Reconstruct what a person typed, line by line, from a terminal's input.

A line counts only if every key in it is known. One key that could have changed the line unseen, such as a recall of
history or a completion, drops the line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ironcurtain.terminal.keys import InputKind, InputPiece, stroke
from ironcurtain.terminal.provenance import KEY, PASTE, Provenance
from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END
from ironcurtain.text.display import has_hidden_text
from ironcurtain.text.line_editing import edited

LINE_LIMIT = 16_000
"""Maximum length of a line in characters. A longer one does not count."""

_KEYS = {
    b"\x1b[C": "ctrl-f",
    b"\x1bOC": "ctrl-f",
    b"\x1b[D": "ctrl-b",
    b"\x1bOD": "ctrl-b",
    b"\x1b[H": "ctrl-a",
    b"\x1bOH": "ctrl-a",
    b"\x1b[1~": "ctrl-a",
    b"\x1b[F": "ctrl-e",
    b"\x1bOF": "ctrl-e",
    b"\x1b[4~": "ctrl-e",
    b"\x1b[3~": "ctrl-d",
    b"\x7f": "ctrl-h",
}
"""Keys that do the same as a key with Ctrl: cursor keys, Home, End, Delete, Backspace (xterm's ctlseqs)."""

_NO_EFFECT = frozenset(("ctrl-l",))
"""Keys that leave the line as it is: redraw."""

_LINE_ENDS = re.compile("\r\n?")
_STRINGS = (b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX")
_STRING_ENDS = (b"\x07", b"\x18", b"\x1b\\")


class EnteredLine(NamedTuple):
    """
    A line that was completed with Enter.

    :param typed: what of it was typed, and not pasted.
    """

    text: str
    typed: str


class TypedText:
    """The line editor. It has the editing keys that programs share; any other key makes a line uncertain."""

    def __init__(self) -> None:
        self._start_line()
        self._in_answer = False
        self._typed = codecs.getincrementaldecoder("utf-8")("replace")
        self._pasted = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, pieces: Iterable[InputPiece]) -> list[EnteredLine]:
        """
        :param pieces: the input of one read. Mouse and the terminal's answers do not count.
        :returns: the lines that were completed with Enter.
        """
        lines: list[EnteredLine] = []
        for piece in pieces:
            if piece.kind is InputKind.REPORT:
                self._in_answer = piece.data in _STRINGS or (self._in_answer and not piece.data.endswith(_STRING_ENDS))
            elif self._in_answer:  # it was cut off, so what follows in this read could be the rest of it
                self._in_answer = self._certain = False
                break
            elif piece.kind is InputKind.TYPED:
                lines += self._keys(piece.data)
            elif piece.kind is InputKind.PASTED and piece.data not in (PASTE_BEGIN, PASTE_END):
                self._insert(_LINE_ENDS.sub("\n", self._pasted.decode(piece.data)), PASTE)
        return lines

    def _start_line(self) -> None:
        self._before = self._after = ""
        self._certain, self._provenance = True, Provenance()

    def _keys(self, data: bytes) -> Iterator[EnteredLine]:
        if data[:1] == b"\x1b":
            self._sequence(data)
            return
        for character in self._typed.decode(data):
            if character == "\r":
                line, certain = EnteredLine(self._before + self._after, self._provenance.own()), self._certain
                self._start_line()
                if certain and line.text.strip():
                    yield line
            elif character == "\n" or (character >= " " and character != "\x7f"):
                self._insert(character)
            else:
                self._sequence(character.encode())

    def _sequence(self, data: bytes) -> None:
        name, released = (_KEYS[data], False) if data in _KEYS else stroke(data)
        if released:
            return
        if len(name) == 1:
            self._insert(name)
        else:
            self._edit(name)

    def _insert(self, text: str, longest: int = KEY) -> None:
        self._before += text
        if has_hidden_text(text) or "\t" in text or len(self._before) + len(self._after) > LINE_LIMIT:
            self._certain = False
            self._before = self._before[:LINE_LIMIT]
        self._provenance.change(self._before + self._after, longest)

    def _edit(self, name: str) -> None:
        if name == "ctrl-c":
            self._start_line()
            return
        if (line := edited(self._before, self._after, name)) is not None:
            self._before, self._after = line
        else:
            self._certain = self._certain and name in _NO_EFFECT
        self._provenance.change(self._before + self._after, PASTE)
