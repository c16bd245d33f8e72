"""Tell what a person typed from what a terminal sends by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ironcurtain.terminal.keys import PASTE_BEGIN, PASTE_END

SEQUENCE_LIMIT = 256
"""Most bytes that are kept of a sequence that has not ended (real ones have at most 60)."""


class Kind(Enum):
    """Where bytes come from."""

    TYPED = "typed"
    """Text and keys."""

    PASTED = "pasted"
    """Text of a bracketed paste, with its marks."""

    MOUSE = "mouse"
    """Movements, buttons and the wheel."""

    REPORT = "report"
    """The terminal's answers to a program's questions, its focus, its size."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of one kind."""

    kind: Kind
    data: bytes


_PIECES = re.compile(
    rb"(?P<mouse>\x1b\[M[\x20-\xff]{3}|\x1b\[<[\d;]*[Mm]|\x1b\[\d+;\d+;\d+M)"
    rb"|(?P<report>\x1b\[\?[\d;$]*[a-zA-Z]|\x1b\[>[\d;]*c|\x1b\[\d+;\d+R|\x1b\[[03]n|\x1b\[[IO]|\x1b\[[\d;]*t|\x1b\[\d*;?\d*\$y)"
    rb"|(?P<pasted>\x1b\[20[01]~)"
    rb"|(?P<string>\x1b[\]P_^X](?=.))"
    rb"|(?P<typed>\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1bO[\x40-\x7e]|\x1b[^\[O]|[^\x1b]+)",
    re.DOTALL,
)
"""What terminals send (xterm's ctlseqs; kitty's keyboard protocol), in the order in which it is tried."""

_STRING_END = re.compile(rb"\x1b\\|[\x07\x18]|(?=\x1b.|[\x00-\x1a\x1c-\x1f])", re.DOTALL)
"""An answer has no control characters in it: whatever has is none (Alt and a key looks like the beginning of one)."""


class TypedReader:
    """Cuts what is read from a terminal into pieces; a sequence may be cut between reads."""

    def __init__(self) -> None:
        self._rest = b""
        self._in_string = self._in_paste = False

    def feed(self, read: bytes) -> list[Piece]:
        """
        :param read: what one read gave.
        :returns: pieces; all of them together are all that was read, but for a sequence that has not ended yet.
        """
        if b"\x1b" not in read and not (self._rest or self._in_string or self._in_paste):
            return [Piece(Kind.TYPED, read)] if read else []
        data, self._rest = self._rest + read, b""
        return [piece for piece in self._cut(data) if piece.data]

    def _cut(self, data: bytes) -> Iterator[Piece]:
        while data:
            if self._in_string:
                piece, data = self._string(data)
            elif self._in_paste:
                piece, data = self._paste(data)
            elif match := _PIECES.match(data):
                piece, data = self._piece(match), data[match.end() :]
            elif len(data) > SEQUENCE_LIMIT or data == b"\x1b":
                piece, data = Piece(Kind.TYPED, data[:1]), data[1:]
            else:
                self._rest = data
                return
            yield piece

    def _piece(self, match: re.Match[bytes]) -> Piece:
        self._in_string = match.lastgroup == "string"
        self._in_paste = match[0] == PASTE_BEGIN
        return Piece(_KINDS[match.lastgroup or ""], match[0])

    def _string(self, data: bytes) -> tuple[Piece, bytes]:
        """Operating system commands and the like: a terminal sends them only as answers."""
        if end := _STRING_END.search(data):
            self._in_string = False
            return Piece(Kind.REPORT, data[: end.end()]), data[end.end() :]
        keep = data.endswith(b"\x1b")
        self._rest = data[-1:] if keep else b""
        return Piece(Kind.REPORT, data[:-1] if keep else data), b""

    def _paste(self, data: bytes) -> tuple[Piece, bytes]:
        before, mark, after = data.partition(PASTE_END)
        if mark:
            self._in_paste = False
            return Piece(Kind.PASTED, before), mark + after
        kept = max(n for n in range(len(PASTE_END)) if PASTE_END.startswith(data[len(data) - n :]))
        self._rest = data[len(data) - kept :]
        return Piece(Kind.PASTED, data[: len(data) - kept]), b""


_KINDS = {"mouse": Kind.MOUSE, "report": Kind.REPORT, "string": Kind.REPORT, "pasted": Kind.PASTED, "typed": Kind.TYPED}


def by_a_person(pieces: list[Piece]) -> bool:
    """Whether somebody did something: a terminal's own reports are none of that."""
    return any(piece.kind is not Kind.REPORT for piece in pieces)
