"""
Find the end of a body (RFC 9112, sections 6 and 7): counters that take bytes in any slicing.

Each has ``feed(data)``, which returns the payload and the number of bytes that belong to the body; ``done`` once the
body is complete; and ``may_end``, whether the connection may end here.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

from ironcurtain.errors import ProtocolViolation

SIZE_LINE_LIMIT = 256
"""Maximum length in bytes of a chunk-size line, including extensions."""

TRAILER_LIMIT = 8192
"""Maximum size in bytes of the trailer fields after a chunked body."""

_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_HEX = frozenset(b"0123456789abcdefABCDEF")


class Framing(Protocol):
    """The framing of a body, and its progress."""

    done: bool
    may_end: bool

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """
        Process bytes that follow the previous ones. Must not be called after the body's end.

        :returns: the payload, and the number of bytes that belong to the body; the rest belongs to the next message.
        :raises ProtocolViolation: the framing is invalid.
        """


class Counted:
    """A body of known length, possibly zero."""

    __slots__ = ("done", "left")
    may_end = False

    def __init__(self, length: int) -> None:
        self.left, self.done = length, length == 0

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """See :class:`Framing`."""
        if len(data) > self.left:
            data = data[: self.left]
        self.left -= len(data)
        self.done = self.left == 0
        return data, len(data)


class UntilClose:
    """A response that ends with its connection."""

    __slots__ = ()
    done, may_end = False, True

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """See :class:`Framing`."""
        return data, len(data)


class Chunked:
    """
    A chunked body.

    :param strict: refuse chunk extensions and trailer fields, which agents do not send; if not, they are dropped.
    """

    __slots__ = ("_left", "_line", "_state", "_strict", "_trailers", "done")
    may_end = False

    def __init__(self, strict: bool) -> None:
        self.done, self._strict = False, strict
        self._line, self._left, self._trailers = b"", 0, 0
        self._state: Literal["size", "data", "data-end", "trailer"] = "size"

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """See :class:`Framing`."""
        pieces: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.done:
            if self._state == "data":
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = "data-end"
            else:
                at = self._take_chunk(data, at, pieces) or self._take_line(data, at)
        return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), at

    def _take_chunk(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """:returns: the end of a complete chunk, as most chunks of streams are; zero if it is not complete."""
        if self._state != "size" or self._line or (line := _SIZE.match(data, at)) is None:
            return 0
        start, size = line.end(), int(line[1], 16)
        stop = start + size
        if not size or data[stop : stop + 2] != b"\r\n":
            return 0
        pieces.append(data[start:stop])
        return stop + 2

    def _take_line(self, data: bytes, at: int) -> int:
        newline = data.find(b"\n", at)
        stop = len(data) if newline < 0 else newline + 1
        self._line += data[at:stop]
        if len(self._line) > (TRAILER_LIMIT if self._state == "trailer" else SIZE_LINE_LIMIT):
            raise ProtocolViolation("http", "a line between chunks is too long")
        if newline >= 0:
            line, self._line = self._line, b""
            if not line.endswith(b"\r\n") or b"\r" in line[:-2]:
                raise ProtocolViolation("http", "a line between chunks does not end in CRLF")
            self._take_whole(line[:-2])
        return stop

    def _take_whole(self, line: bytes) -> None:
        if self._state == "size":
            self._left = self._size(line)
            self._state = "data" if self._left else "trailer"
        elif self._state == "data-end":
            if line:
                raise ProtocolViolation("http", "a chunk is longer than its size")
            self._state = "size"
        elif line:
            self._trailers += len(line)
            if self._strict or self._trailers > TRAILER_LIMIT:
                raise ProtocolViolation("http", "trailer fields, or too many")
        else:
            self.done = True

    def _size(self, line: bytes) -> int:
        digits, semicolon, _ = line.partition(b";")
        if semicolon and self._strict:
            raise ProtocolViolation("http", "a chunk extension")
        if semicolon:
            digits = digits.rstrip(b" \t")
        if not digits or len(digits) > 15 or not _HEX.issuperset(digits):
            raise ProtocolViolation("http", "the size of a chunk is not a number")
        return int(digits, 16)
