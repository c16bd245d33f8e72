"""A screen model that only remembers: the last output, shown again. For where there is no terminal emulator."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from ironcurtain.terminal.restore import CLEAR, RESTORE
from ironcurtain.terminal.sequences import SEQUENCE, SEQUENCE_LIMIT, plain, unfinished

RING_LIMIT = 256 * 1024
"""Most bytes of output that are kept (some twenty full screens of a busy program)."""

PIECE = 4096
"""Fewer bytes than these are put together (each piece by itself costs some 60 bytes)."""

_SAID_ONCE = re.compile(
    rb"[\x05\x07]|\x1bZ|\x1b\[[\x30-\x3f]*[cntx]|\x1b\[[?>][\d;]*[Su]|\x1b\[\?[\d;:]*m|\x1b\[>[\d;]*q"
    rb"|\x1b\[[\x30-\x3f]*(?:\$p|\$w|\*y|&w|'\|)|\x1b[PX^_].*|\x1b\](?![0128];).*",
    re.DOTALL,
)
"""
What must not be said to a terminal a second time: what it answers, since answers are typed into the program (xterm's
ctlseqs: identity, status, size, modes, settings), what it keeps (colours, clipboard, pictures), rings or notifies.
"""

_SAYS = re.compile(SEQUENCE.pattern + rb"|[\x05\x07]", re.DOTALL)


class RingScreen:
    """
    Keeps the last output and shows it again.

    What a full-screen program drew longer ago is missing until that program draws afresh, which a change of size
    makes most do.
    """

    def __init__(self, limit: int = RING_LIMIT) -> None:
        self._limit = limit
        self._pieces: deque[bytearray | bytes] = deque()
        self._size = 0
        self._lost = False

    @property
    def between(self) -> bool:
        """Whether the output is between two sequences."""
        return not unfinished(self._last(SEQUENCE_LIMIT))

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere. Large pieces are kept as they are: to copy them would take the longest."""
        if len(data) > self._limit:
            data, self._lost = data[-self._limit :], True
        self._size += len(data)
        if len(data) >= PIECE:
            self._pieces.append(data)
        elif self._pieces and isinstance(last := self._pieces[-1], bytearray) and len(last) < PIECE:
            last += data
        else:
            self._pieces.append(bytearray(data))
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.popleft())
            self._lost = True

    def resize(self, columns: int, rows: int) -> None:
        """What is kept does not depend on a size."""

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        """:param draw: gets, at once, the last output without what must be said only once."""
        draw(replay(self.kept()))

    def text(self, found: Callable[[str], None]) -> None:
        """:param found: gets, at once, the last output as plain text."""
        found(plain(self.kept()))

    def close(self) -> None:
        """What is kept stays as it is."""

    def kept(self) -> bytes:
        """:returns: the last output; from the beginning of a line, where some is missing."""
        data = self._last(self._limit)
        return data[data.find(b"\n") + 1 :] if self._lost or self._size > self._limit else data

    def _last(self, size: int) -> bytes:
        found: list[bytes | bytearray] = []
        for piece in reversed(self._pieces):
            found.append(piece)
            size -= len(piece)
            if size <= 0:
                break
        data = b"".join(reversed(found))
        return data[-size:] if size < 0 else data


def replay(kept: bytes) -> bytes:
    """:returns: what shows output again on any terminal, without what must be said only once."""
    end = unfinished(kept)
    whole = kept[: len(kept) - len(end)]
    return RESTORE + CLEAR + _SAYS.sub(lambda said: b"" if _SAID_ONCE.fullmatch(said[0]) else said[0], whole) + end
