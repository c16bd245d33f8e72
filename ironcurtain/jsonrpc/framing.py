"""Split a byte stream into lines of bounded length, in any slicing of the stream."""

from __future__ import annotations

import msgspec

INBOUND_LIMIT = 8 * 1024 * 1024
"""Maximum size in bytes of one message from an agent: 8 MiB (the largest real request seen was below 1 MiB)."""

OUTBOUND_LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes of one message from a backend: 64 MiB (results of 10 MiB are common)."""


class TooLong:
    """Stands for a line over the limit that was discarded."""

    __slots__ = ()


TOO_LONG = TooLong()


PIECES = 1024
"""Maximum number of pieces of a line kept separately: each has an overhead of some 40 bytes."""


class Framer(msgspec.Struct):
    """
    Collects bytes until lines are complete.

    A line ends with LF or CRLF; empty lines are skipped. A line over the limit is discarded while it arrives, so that
    it never uses more memory than the limit, and is reported once as :data:`TOO_LONG`.

    :param limit: maximum length in bytes of a line, without its end.
    :ivar discarded: number of bytes discarded so far of the current overlong line.
    """

    limit: int
    discarded: int = 0
    _pieces: list[bytes] = msgspec.field(default_factory=list)
    _joined: list[bytes] = msgspec.field(default_factory=list)
    _size: int = 0
    _discarding: bool = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """
        Process bytes from the transport.

        :param data: zero or more bytes.
        :returns: the completed lines, without their ends, in order.
        """
        lines: list[bytes | TooLong] = []
        if b"\n" not in data:  # much faster than splitting
            self._keep(data, lines)
            return lines
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._end(piece, lines)
        self._keep(rest, lines)
        return lines

    @property
    def pending(self) -> bool:
        """Whether there is an incomplete line, or one that is being discarded."""
        return self._discarding or self._size > 0

    def _end(self, piece: bytes, lines: list[bytes | TooLong]) -> None:
        if self._size or self._discarding:
            self._keep(piece, lines)
            piece = b"".join((*self._joined, *self._pieces))
            self._drop()
        if self._discarding:
            self._discarding, self.discarded = False, 0
        elif len(line := piece.removesuffix(b"\r")) > self.limit:
            lines.append(TOO_LONG)
        elif line:
            lines.append(line)

    def _keep(self, piece: bytes, lines: list[bytes | TooLong]) -> None:
        if self._discarding or not piece:
            self.discarded += len(piece)
            return
        self._size += len(piece)
        if self._size > self.limit + 1:  # one more, for the CR of a CRLF
            self._drop()
            self._discarding = True
            lines.append(TOO_LONG)
            return
        self._pieces.append(piece)
        if len(self._pieces) >= PIECES:  # an agent may send a line byte by byte
            self._joined.append(b"".join(self._pieces))
            self._pieces.clear()

    def _drop(self) -> None:
        self._pieces.clear()
        self._joined.clear()
        self._size = 0
