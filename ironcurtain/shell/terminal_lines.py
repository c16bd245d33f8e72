"""The last lines of a terminal as a person reads them, made of what programs wrote to it."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from itertools import islice

import msgspec

from ironcurtain.terminal.sequences import SequenceReader, partial_character

TAIL = 128 * 1024
"""Bytes of a flood that are read; what came before them would be pushed out by their lines."""

BYTES_A_LINE = 512
"""More bytes than :data:`TAIL` are read where so many lines are kept that each has fewer than this."""

WIDEST = 2000
"""Columns of a terminal whose width is not known."""

_ALTERNATE = re.compile(rb"\x1b\[\?(?:\d+;)*(?:1049|1047|47)(?:;\d+)*([hl])")
_ALTERNATE_MODES = frozenset(("1049", "1047", "47"))
_C1 = {code: f"\x1b{chr(code - 0x40)}" for code in range(0x80, 0xA0)}
"""Control characters that stand for a sequence of two (ECMA-48, section 5.3)."""

_SECOND_HALF = "\0"
"""Stands behind a character that is two columns wide."""


def as_read(output: bytes, columns: int = 0) -> str:
    """
    :param output: whole, of one command.
    :param columns: width of its terminal; 0: not known.
    :returns: all of it as a person reads it.
    """
    most = output.count(b"\n") + len(output) // min(columns or WIDEST, BYTES_A_LINE) + 1
    lines = TerminalLines(most, columns)
    lines.feed(output)
    return "\n".join(lines.lines())


class _Row(msgspec.Struct):
    """:param wraps: whether it goes on in the next one."""

    text: str = ""
    wraps: bool = False


class TerminalLines:
    """
    Keeps the last lines. Colours and titles are left out, and so is what programs draw on the alternate screen;
    carriage return, backspace and erasing change the line as they do in a terminal, and the cursor may move up to
    earlier lines.

    :param limit: most lines.
    :param columns: width of the terminal; 0: not known.
    """

    def __init__(self, limit: int = 200, columns: int = 0) -> None:
        self._limit, self._width = limit, columns or WIDEST
        self._tail = max(TAIL, BYTES_A_LINE * limit)
        self._pending = bytearray()
        self._start_anew()
        self._alternate = False

    def _start_anew(self) -> None:
        self._reader = SequenceReader()
        self._rows: deque[_Row] = deque([_Row()])
        self._row = self._column = self._new = 0

    def resize(self, columns: int) -> None:
        """The terminal has this width from now on."""
        self._read()
        self._width = columns or WIDEST

    def feed(self, data: bytes) -> None:
        """:param data: more output, cut anywhere. It is read when the lines are asked for."""
        self._pending += data
        if len(self._pending) > 2 * self._tail:
            self._drop(len(self._pending) - self._tail)

    def lines(self) -> list[str]:
        """:returns: the last lines, the oldest first, without empty ones at the end."""
        self._read()
        return self._since(0)

    def take(self) -> list[str]:
        """:returns: of these lines those that were not taken before; the one with the cursor comes again."""
        self._read()
        new = self._since(self._new)
        self._new = len(self._rows) - 1
        return new

    def _since(self, first: int) -> list[str]:
        lines, parts = list[str](), list[str]()
        for row in islice(self._rows, first, None):
            parts.append(row.text)
            if not row.wraps:
                lines.append("".join(parts).replace(_SECOND_HALF, "").rstrip())
                parts = []
        lines += ["".join(parts).replace(_SECOND_HALF, "").rstrip()] if parts else []
        while lines and not lines[-1]:
            lines.pop()
        return lines[-self._limit :] if self._limit else []

    def _drop(self, count: int) -> None:
        """Forget so many bytes of a flood and what was before them, but not which screen is shown."""
        end = self._pending.find(b"\n", count) + 1 or count
        for toggle in _ALTERNATE.finditer(self._pending, 0, end):
            self._alternate = toggle[1] == b"h"
        del self._pending[:end]
        self._start_anew()

    def _read(self) -> None:
        if len(self._pending) > self._tail:
            self._drop(len(self._pending) - self._tail)
        data = bytes(self._pending)
        rest = partial_character(data)
        self._pending = bytearray(rest)
        text = data[: len(data) - len(rest)].decode("utf-8", "replace")
        for match in self._reader.feed(text.translate(_C1) if not text.isascii() else text):
            kind = match.lastgroup
            if kind == "final":
                if match["final"] != "m":  # colours are most of them
                    self._control_sequence(match["parameters"], match["between"] + match["final"])
            elif self._alternate:
                continue
            elif kind == "text":
                self._write(match[0])
            elif kind == "control":
                self._control(match[0])
            else:
                self._escape(match["escape"])

    def _control(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character in "\n\v\f":
            self._down()
            self._column = 0
        elif character == "\b":
            self._column = max(0, min(self._column, self._last_column) - 1)
        elif character == "\t":
            self._column = min(self._column // 8 * 8 + 8, self._last_column)

    def _escape(self, escape: str) -> None:
        if escape in ("E", "c"):
            self._new_line()
        elif escape == "D":
            self._down()
        elif escape == "M":
            self._row = max(0, self._row - 1)

    def _control_sequence(self, parameters: str, final: str) -> None:
        if final in ("h", "l"):
            if parameters.startswith("?") and not _ALTERNATE_MODES.isdisjoint(parameters[1:].split(";")):
                self._alternate = final == "h"
            return
        if self._alternate or not all(c in "0123456789;" for c in parameters):
            return
        first = parameters.partition(";")[0][:5]
        self._move_or_erase(final, int(first or 0))

    def _move_or_erase(self, final: str, number: int) -> None:
        row, count = self._rows[self._row], number or 1
        column = min(self._column, self._last_column)
        match final:
            case "C" | "a":
                self._column = min(column + count, self._last_column)
            case "D":
                self._column = max(0, column - count)
            case "G" | "`":
                self._column = min(count - 1, self._last_column)
            case "A" | "F":
                self._row = max(0, self._row - count)
                self._column = column if final == "A" else 0
            case "B" | "e" | "E":
                self._row = min(len(self._rows) - 1, self._row + count)
                self._column = column if final != "E" else 0
            case "K" | "J" if number == 0:
                row.text, row.wraps = row.text[:column], False
                if final == "J":
                    self._forget_below()
            case "K" if number in (1, 2):
                kept = "" if number == 2 else row.text[column + 1 :]
                row.text = " " * (column + 1) + kept if kept else ""
            case "P":
                row.text = row.text[:column] + row.text[column + count :]
            case "@":
                row.text = row.text[:column].ljust(column) + " " * min(count, self._width) + row.text[column:]
                row.text = row.text[: self._width]
            case "X":
                row.text = row.text[:column].ljust(column) + " " * min(count, self._width) + row.text[column + count :]
            case "H" | "f" | "J" | "d":
                self._new_line()  # where on the screen that is, is not known

    @property
    def _last_column(self) -> int:
        return self._width - 1

    def _write(self, text: str) -> None:
        if not text.isascii():
            text = "".join(c + _SECOND_HALF if unicodedata.east_asian_width(c) in "WF" else c for c in text)
        at = 0
        while at < len(text):
            if self._column >= self._width:
                self._rows[self._row].wraps = True
                self._down()
                self._column = 0
            piece = text[at : at + self._width - self._column]
            row = self._rows[self._row]
            if self._column == len(row.text):
                row.text += piece
            else:
                row.text = row.text[: self._column].ljust(self._column) + piece + row.text[self._column + len(piece) :]
            self._column += len(piece)
            at += len(piece)

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append(_Row())
            if len(self._rows) > 2 * self._limit + 1:
                self._rows.popleft()
                self._row -= 1
                self._new = max(self._new - 1, 0)

    def _new_line(self) -> None:
        self._row = len(self._rows) - 1
        if self._rows[-1].text:
            self._down()
        self._column = 0

    def _forget_below(self) -> None:
        while len(self._rows) > self._row + 1:
            self._rows.pop()
        self._new = min(self._new, self._row)
