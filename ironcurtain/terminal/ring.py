"""A screen model that only remembers: the last output, shown again. For where there is no terminal emulator. Pure."""

from __future__ import annotations

import re
from collections import deque

from ironcurtain.terminal.restore import CLEAR, RESTORE
from ironcurtain.terminal.sequences import SEQUENCE, SEQUENCE_LIMIT, plain, unfinished

RING_LIMIT = 256 * 1024
"""Most bytes of output that are kept (some twenty full screens of a busy program; our choice)."""

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
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._lost = False
        self._tail = b""

    @property
    def between(self) -> bool:
        """Whether the output is between two sequences."""
        return not unfinished(self._tail)

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere."""
        self._tail = (self._tail + data[-SEQUENCE_LIMIT:])[-SEQUENCE_LIMIT:]
        self._chunks.append(data)
        self._size += len(data)
        while self._size - len(self._chunks[0]) >= self._limit:
            self._size -= len(self._chunks.popleft())
            self._lost = True

    def resize(self, columns: int, rows: int) -> None:
        """What is kept does not depend on a size."""

    def redraw(self, columns: int, rows: int, history: bool = False) -> bytes:
        """:returns: the last output, without what must be said only once."""
        kept = self._kept()
        end = unfinished(kept)
        whole = kept[: len(kept) - len(end)]
        return RESTORE + CLEAR + _SAYS.sub(lambda said: b"" if _SAID_ONCE.fullmatch(said[0]) else said[0], whole) + end

    def text(self) -> str:
        """:returns: the last output as plain text."""
        return plain(self._kept())

    def _kept(self) -> bytes:
        data = b"".join(self._chunks)
        if self._lost or len(data) > self._limit:
            data = data[-self._limit :]
            return data[data.find(b"\n") + 1 :]  # the beginning is missing: start with a whole line
        return data
