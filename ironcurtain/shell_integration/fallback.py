"""
Instructions to the agent of a shell that shows no marks: what is typed after ``##`` at the beginning of a line.

Nobody but the shell knows what its line holds; hence only the first keys of a line count, and only while the shell
itself has the terminal.
"""

from __future__ import annotations

import re
from enum import Enum

import msgspec

from ironcurtain.shell_integration.marks import without_signs
from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END
from ironcurtain.text.columns import cells

_SIGN = b"##"
_ESCAPED = b"\\##"
_BREAKS = b"\r\n"
_INTERRUPT, _KILL, _ESCAPE, _ERASERS = 0x03, 0x15, 0x1B, b"\x08\x7f"
_CONTROL_SEQUENCE = re.compile(rb"\x1b(?:[@-NP-Z\\-~]|O[@-~]?|\[[0-?]*[ -/]*[@-~]?)?")
"""An escape sequence of a key, or the first part of one."""


class FallbackInput(msgspec.Struct, frozen=True):
    """
    :param forwarded: for the shell; of an instruction the Enter, so that it shows its prompt again.
    :param echo: for the user's terminal, before the shell answers.
    :param instructions: that were typed.
    """

    forwarded: bytes
    echo: bytes
    instructions: tuple[str, ...]


class _State(Enum):
    START = "start"
    """Nothing was typed on this line."""
    LINE = "line"
    """The line is the shell's."""
    SIGN = "sign"
    """The first keys of an instruction, or of what only looks like one, are held back."""
    TEXT = "text"
    """An instruction is being typed."""


class FallbackPrefix:
    """Takes instructions out of what is typed, in any slicing."""

    def __init__(self) -> None:
        self._state = _State.START
        self._signs = b""
        self._text = bytearray()
        self._key = b""
        self._pasted = False
        self._forwarded, self._echo = bytearray(), bytearray()
        self._instructions: list[str] = []

    def feed(self, data: bytes, in_foreground: bool) -> FallbackInput:
        """
        :param data: what was typed.
        :param in_foreground: whether the shell itself has the terminal, and not a command of it.
        """
        self._forwarded, self._echo, self._instructions = bytearray(), bytearray(), []
        if in_foreground:
            for byte in data:
                self._typed(byte)
        else:
            self._release()
            self._key, self._pasted, self._state = b"", False, _State.START
            self._forwarded += data
        return FallbackInput(bytes(self._forwarded), bytes(self._echo), tuple(self._instructions))

    def _typed(self, byte: int) -> None:
        self._follow_key(byte)
        if self._state is _State.TEXT:
            self._instruct(byte)
        elif self._key or self._pasted:
            self._release()
            self._state = _State.LINE
            self._forwarded.append(byte)
        elif self._state in (_State.START, _State.SIGN):
            self._sign(byte)
        else:
            self._forward(byte)
        if self._key == PASTE_BEGIN:
            self._pasted = True
        elif self._key == PASTE_END:
            self._pasted = False

    def _follow_key(self, byte: int) -> None:
        key = self._key + bytes((byte,))
        self._key = key if len(key) <= len(PASTE_END) + 10 and _CONTROL_SEQUENCE.fullmatch(key) else b""
        if not self._key and byte == _ESCAPE:
            self._key = b"\x1b"

    def _forward(self, byte: int) -> None:
        self._forwarded.append(byte)
        self._state = _State.START if byte in (*_BREAKS, _INTERRUPT, _KILL) else _State.LINE

    def _sign(self, byte: int) -> None:
        signs = self._signs + bytes((byte,))
        if byte in _ERASERS and self._signs:
            self._take_back()
        elif byte in _ERASERS:
            self._forwarded.append(byte)
        elif signs == _SIGN:
            self._signs, self._state = signs, _State.TEXT
            self._echo.append(byte)
        elif signs == _ESCAPED:
            self._signs = b""
            self._echo += _erased(len(_ESCAPED) - 1)
            self._forwarded += _SIGN
            self._state = _State.LINE
        elif _SIGN.startswith(signs) or _ESCAPED.startswith(signs):
            self._signs, self._state = signs, _State.SIGN
            self._echo.append(byte)
        else:
            self._release()
            self._forward(byte)

    def _take_back(self) -> None:
        self._signs = self._signs[:-1]
        self._state = _State.SIGN if self._signs else _State.START
        self._echo += _erased(1)

    def _release(self) -> None:
        """Not an instruction: what was held back is the shell's."""
        if self._state is _State.SIGN:
            self._echo += _erased(len(self._signs))
            self._forwarded += self._signs
        elif self._state is _State.TEXT:
            self._echo += _erased(self._columns())
        self._signs = b""
        self._text.clear()

    def _instruct(self, byte: int) -> None:
        if byte in _BREAKS and not self._pasted:
            self._instructions.append(without_signs(self._text.decode(errors="replace")))
            self._echo += b"\r\n"
            self._forwarded += b"\r"
            self._restart()
        elif byte == _INTERRUPT:
            self._forwarded.append(byte)
            self._restart()
        elif byte == _KILL:
            self._echo += _erased(self._columns())
            self._restart()
        elif byte in _ERASERS:
            self._erase()
        elif byte in _BREAKS:
            self._text += b"\n"
            self._echo += b" "
        elif byte >= 0x20 and not self._key:
            self._text.append(byte)
            self._echo.append(byte)

    def _erase(self) -> None:
        if not self._text:
            self._take_back()
            return
        last = self._text.decode(errors="replace")[-1]
        while self._text and self._text.pop() & 0xC0 == 0x80:
            pass
        self._echo += _erased(cells(last))

    def _columns(self) -> int:
        return len(self._signs) + cells(self._text.decode(errors="replace"))

    def _restart(self) -> None:
        self._signs, self._state = b"", _State.START
        self._text.clear()


def _erased(columns: int) -> bytes:
    return b"\b" * columns + b" " * columns + b"\b" * columns
