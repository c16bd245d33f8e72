"""
Recognise reserved keys in a terminal's input, passing all other input unchanged, and separate typed input from the
terminal's own reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END

HOLD_SECONDS = 1.0
"""Seconds for which the first half of a reserved pair is held back."""

_KITTY = re.compile(rb"\x1b\[(\d{1,7})(?::\d*)?(?::(\d{1,7}))?(?:;(\d{1,3})?(?::(\d))?)?(?:;[\d:]*)?u")
"""A key in kitty's keyboard protocol: number, number on the usual layout, modifiers, event type."""

_XTERM = re.compile(rb"\x1b\[27;(\d{1,3});(\d{1,7})~")
"""A key in xterm's modifyOtherKeys: modifiers, number."""

_STROKE = re.compile(rb"\x1b\[[\d:;]+[u~]|[\x00-\x1a\x1c-\x1f]")
"""A key with Ctrl, in each of these encodings."""

_REPORT = (
    rb"\x1b\[\?[\d;$]*[a-zA-Z]|\x1b\[>[\d;]*c|\x1b\[\d+;\d+R|\x1b\[[03]n|\x1b\[[IO]|\x1b\[[\d;]*t|\x1b\[\d*;?\d*\$y"
)
"""What a terminal reports, but for strings."""

_REPORTS = re.compile(rb"((?:%b|\x1b[\]P_^X][ -~]*(?:\x1b\\|\x07))+)" % _REPORT)
"""Reports at the beginning of a read."""

_CONTROL, _LOCKS, _RELEASED = 4, 64 | 128, b"3"
"""Modifier bits, and the event type of a released key (kitty's keyboard protocol)."""


class ForwardedInput(msgspec.Struct, frozen=True):
    """Input for the program."""

    data: bytes


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """
    A reserved key was pressed.

    :param name: ``interrupt``, ``quit`` or ``detach``.
    :param data: the terminal's input for it.
    """

    name: str
    data: bytes = field(default=b"", compare=False)


class ReservedKey(msgspec.Struct, frozen=True):
    """
    A reserved key, or a pair of keys.

    :param name: name in :class:`KeyPressed`.
    :param strokes: such as ``ctrl-c`` or ``d``.
    """

    name: str
    strokes: tuple[str, ...]


INTERRUPT = ReservedKey("interrupt", ("ctrl-c",))
QUIT = ReservedKey("quit", ("ctrl-\\",))
DETACH = ReservedKey("detach", ("ctrl-]", "d"))


def stroke(read: bytes) -> tuple[str, bool]:
    """
    Decode a read as one key, in all encodings of terminals.

    :returns: its name, empty if it cannot be reserved; and whether it was released, not pressed.
    """
    if len(read) == 1:
        return _plain(read[0]), False
    if match := _KITTY.fullmatch(read):
        return _modified(int(match[2] or match[1]), int(match[3] or 1)), match[4] == _RELEASED
    if match := _XTERM.fullmatch(read):
        return _modified(int(match[2]), int(match[1])), False
    return "", False


def _plain(byte: int) -> str:
    return f"ctrl-{chr(byte | 0x40).lower()}" if byte < 0x20 else chr(byte) if byte < 0x7F else ""


def _modified(number: int, modifiers: int) -> str:
    held = (modifiers - 1) & ~_LOCKS
    if not 0x20 <= number < 0x7F or held not in (0, _CONTROL):
        return ""
    return f"ctrl-{chr(number)}" if held else chr(number)


class Keys:
    """
    Finds reserved keys in a terminal's input.

    A key counts only if a read consists of nothing but that key (a terminal sends each press separately), or of nothing
    but such keys or one pair (several reads may have been merged), and only outside a bracketed paste: a pasted file
    can contain any bytes. What the terminal itself reports before a key, or between the keys of a pair, does not count.

    :param reserved: each begins with Ctrl; the first key of a pair must not be reserved itself.
    """

    def __init__(self, reserved: Sequence[ReservedKey]) -> None:
        self._names = {key.strokes: key.name for key in reserved}
        self._first = {key.strokes[0] for key in reserved if len(key.strokes) == 2}
        self._held, self._held_stroke = b"", ""
        self._pasting = False
        self._tail = b""

    @property
    def holding(self) -> bool:
        """Whether the first half of a pair is held back: call :meth:`release` after :data:`HOLD_SECONDS`."""
        return bool(self._held)

    def feed(self, read: bytes) -> list[ForwardedInput | KeyPressed]:
        """
        :param read: the bytes of one read from the terminal.
        :returns: its parts; the data of all :class:`ForwardedInput` is the input without reserved keys.
        """
        if not self._pasting and (reports := _REPORTS.match(read)):
            rest = read[reports.end() :]
            return [ForwardedInput(reports[0]), *(self.feed(rest) if rest else ())]
        several = [] if self._pasting or len(read) < 2 else _STROKE.findall(read)
        if len(several) > 1 and self._all_reserved(read, several):
            return [what for one in several for what in self.feed(one)]
        if len(read) == 2 and not self._pasting and tuple(map(_plain, read)) in self._names:
            return [*self.feed(read[:1]), *self.feed(read[1:])]
        pressed, released = ("", False) if self._track_paste(read) else stroke(read)
        if released and self._held:
            self._held += read  # the first half is released before the second is pressed
            return []
        first = self._held_stroke
        if name := self._names.get((first, pressed), ""):
            held = self._held
            self._forget()
            return [KeyPressed(name, held + read)]
        passed = self.release()
        if released or not pressed:
            pass
        elif name := self._names.get((pressed,), ""):
            return [*passed, KeyPressed(name, read)]
        elif pressed in self._first:
            self._held, self._held_stroke = read, pressed
            return passed
        return [*passed, ForwardedInput(read)] if read else passed

    def release(self) -> list[ForwardedInput | KeyPressed]:
        """:returns: the input that was held back, since the second half did not arrive."""
        held = self._held
        self._forget()
        return [ForwardedInput(held)] if held else []

    def _all_reserved(self, read: bytes, several: list[bytes]) -> bool:
        named = (stroke(one) for one in several)
        return b"".join(several) == read and all(gone or (name,) in self._names for name, gone in named)

    def _forget(self) -> None:
        self._held, self._held_stroke = b"", ""

    def _track_paste(self, read: bytes) -> bool:
        """:returns: whether this read began inside a paste."""
        pasting = self._pasting
        seen = self._tail + read
        begin, end = seen.rfind(PASTE_BEGIN), seen.rfind(PASTE_END)
        if begin != end:
            self._pasting = begin > end
        self._tail = seen[1 - len(PASTE_BEGIN) :]
        return pasting


SEQUENCE_LIMIT = 256
"""Maximum number of bytes kept of an incomplete sequence (real ones have at most 60)."""


class InputKind(Enum):
    """The source of input."""

    TYPED = "typed"
    """Text and keys."""

    PASTED = "pasted"
    """Text of a bracketed paste, including its marks."""

    MOUSE = "mouse"
    """Mouse movements, buttons and the wheel."""

    REPORT = "report"
    """The terminal's answers to a program's queries, and its reports of focus and size."""


class InputPiece(msgspec.Struct, frozen=True):
    """Bytes of one kind."""

    kind: InputKind
    data: bytes


_INPUT = re.compile(
    rb"(?P<mouse>\x1b\[M[\x20-\xff]{3}|\x1b\[<[\d;]*[Mm]|\x1b\[\d+;\d+;\d+M)"
    rb"|(?P<report>" + _REPORT + rb")"
    rb"|(?P<pasted>\x1b\[20[01]~)"
    rb"|(?P<string>\x1b[\]P_^X](?=.))"
    rb"|(?P<typed>\x1b\[(?!M)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1bO[\x40-\x7e]|\x1b[\xc2-\xf4][\x80-\xbf]+"
    rb"|\x1b[^\[O\x1b\]P_^X\x80-\xff]|[^\x1b]+)",
    re.DOTALL,
)
"""What terminals send (xterm's ctlseqs; kitty's keyboard protocol), in the order of matching."""

_BEGIN = re.compile(
    rb"\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*|\[M[\x20-\xff]{0,2}|[O\]P_^X]|[\xc2-\xf4])?",
)
"""What can become one of these; what cannot begins with the key Esc."""

_STRING_END = re.compile(rb"\x1b\\|[\x07\x18]|(?=\x1b.|[\x00-\x1a\x1c-\x1f])", re.DOTALL)
"""
Answers contain no control characters. A sequence with one is not an answer (Alt with a key looks like the beginning of
one).
"""


class TypedReader:
    """Splits a terminal's input into pieces. A sequence may span several reads."""

    def __init__(self) -> None:
        self._rest = b""
        self._in_string = self._in_paste = False

    @property
    def in_paste(self) -> bool:
        """Whether a paste has begun and not ended."""
        return self._in_paste

    def end_paste(self) -> bytes:
        """
        The end of a paste will not come.

        :returns: what was read of it, and is in no piece yet.
        """
        rest, self._rest, self._in_paste = self._rest, b"", False
        return rest

    def feed(self, read: bytes) -> list[InputPiece]:
        """
        :param read: the bytes of one read.
        :returns: pieces; together they are the complete input, except an incomplete sequence at its end.
        """
        if b"\x1b" not in read and not (self._rest or self._in_string or self._in_paste):
            return [InputPiece(InputKind.TYPED, read)] if read else []
        data, self._rest = self._rest + read, b""
        return [piece for piece in self._cut(data) if piece.data]

    def _cut(self, data: bytes) -> Iterator[InputPiece]:
        while data:
            if self._in_string:
                piece, data = self._string(data)
            elif self._in_paste:
                piece, data = self._paste(data)
            elif (match := _INPUT.match(data)) and not (data[:1] == b"\x1b" and match.end() > SEQUENCE_LIMIT):
                piece, data = self._piece(match), data[match.end() :]
            elif 1 < len(data) <= SEQUENCE_LIMIT and _BEGIN.fullmatch(data):
                self._rest = data
                return
            else:
                piece, data = InputPiece(InputKind.TYPED, data[:1]), data[1:]
            yield piece

    def _piece(self, match: re.Match[bytes]) -> InputPiece:
        self._in_string = match.lastgroup == "string"
        self._in_paste = match[0] == PASTE_BEGIN
        return InputPiece(_KINDS[match.lastgroup or ""], match[0])

    def _string(self, data: bytes) -> tuple[InputPiece, bytes]:
        """Operating system commands and similar: terminals send them only as answers."""
        if end := _STRING_END.search(data):
            self._in_string = False
            return InputPiece(InputKind.REPORT, data[: end.end()]), data[end.end() :]
        keep = data.endswith(b"\x1b")
        self._rest = data[-1:] if keep else b""
        return InputPiece(InputKind.REPORT, data[:-1] if keep else data), b""

    def _paste(self, data: bytes) -> tuple[InputPiece, bytes]:
        before, mark, after = data.partition(PASTE_END)
        if mark:
            self._in_paste = False
            return InputPiece(InputKind.PASTED, before), mark + after
        kept = max(n for n in range(len(PASTE_END)) if PASTE_END.startswith(data[len(data) - n :]))
        self._rest = data[len(data) - kept :]
        return InputPiece(InputKind.PASTED, data[: len(data) - kept]), b""


_KINDS = {
    "mouse": InputKind.MOUSE,
    "report": InputKind.REPORT,
    "string": InputKind.REPORT,
    "pasted": InputKind.PASTED,
    "typed": InputKind.TYPED,
}


def by_a_person(pieces: list[InputPiece]) -> bool:
    """Whether a person caused the input; the terminal's own reports do not count."""
    return any(piece.kind is not InputKind.REPORT for piece in pieces)
