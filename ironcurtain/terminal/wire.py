"""
The protocol between a terminal's owner and a viewer in another process.

The viewer sends one line of JSON (:class:`Hello`), the owner answers with one (:class:`Welcome`). After that both send
frames: one byte for the kind, four bytes for the length, most significant first, and the content.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from ironcurtain.errors import ProtocolViolation
from ironcurtain.terminal.model import Mode, ProgramExit

T = TypeVar("T")

LINE_LIMIT = 4096
"""Maximum length in bytes of the first line of either side."""

PATIENCE_SECONDS = 5.0
"""Time limit in seconds for the first line of either side."""

FRAME_LIMIT = 64 * 1024
"""Maximum size in bytes of a frame; more is sent in several frames."""

_HEAD = struct.Struct("!cI")
_SIZE = struct.Struct("!HH")
_DATA, _RESIZE, _ENDED = b"d", b"r", b"e"


class Hello(msgspec.Struct, frozen=True):
    """The request of a viewer: a session, and the token from the control API."""

    session: str
    mode: Mode
    columns: int
    rows: int
    token: str


class Welcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    The answer.

    :param code: the error's code; empty: frames follow.
    :param message: for the person.
    """

    code: str = ""
    message: str = ""


class Resize(msgspec.Struct, frozen=True):
    """The viewer's terminal has a new size."""

    columns: int
    rows: int


class _Over(msgspec.Struct, frozen=True):
    status: int | None
    reason: str


Frame = bytes | Resize | ProgramExit


def line(message: Hello | Welcome) -> bytes:
    """:returns: a first line."""
    return msgspec.json.encode(message) + b"\n"


def data_frames(data: bytes) -> bytes:
    """:returns: one or more frames."""
    pieces = (data[i : i + FRAME_LIMIT] for i in range(0, len(data), FRAME_LIMIT))
    return b"".join(_HEAD.pack(_DATA, len(piece)) + piece for piece in pieces)


def frame(what: Resize | ProgramExit) -> bytes:
    """:returns: one frame."""
    if isinstance(what, Resize):
        body, kind = _SIZE.pack(what.columns, what.rows), _RESIZE
    else:
        body, kind = msgspec.json.encode(_Over(what.status, what.reason[:1000])), _ENDED
    return _HEAD.pack(kind, len(body)) + body


class LineReader:
    """
    Reads the first line of a side.

    :ivar rest: what came after the line.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.rest = b""

    def feed(self, data: bytes) -> bytes | None:
        """
        :returns: the line, once it is there.
        :raises ProtocolViolation: it is too long.
        """
        self._buffer += data
        found, end, rest = bytes(self._buffer).partition(b"\n")
        if len(found) > LINE_LIMIT:
            raise ProtocolViolation("attach", f"the first line is over {LINE_LIMIT} bytes")
        if not end:
            return None
        self.rest = rest
        return found


def read_hello(found: bytes) -> Hello:
    """:raises ProtocolViolation: it is none."""
    return _decode(found, Hello)


def read_welcome(found: bytes) -> Welcome:
    """:raises ProtocolViolation: it is none."""
    return _decode(found, Welcome)


def _decode(found: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(found, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise ProtocolViolation("attach", str(e)) from None


class FrameReader:
    """Cuts what comes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """
        :param data: in any slicing.
        :raises ProtocolViolation: a frame is too long, of no known kind, or wrong inside.
        """
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._buffer)
            if length > FRAME_LIMIT:
                raise ProtocolViolation("attach", f"a frame of {length} bytes")
            if len(self._buffer) < _HEAD.size + length:
                return
            body = bytes(self._buffer[_HEAD.size : _HEAD.size + length])
            del self._buffer[: _HEAD.size + length]
            yield _frame(kind, body)


def _frame(kind: bytes, body: bytes) -> Frame:
    if kind == _DATA:
        return body
    if kind == _RESIZE and len(body) == _SIZE.size:
        return Resize(*_SIZE.unpack(body))
    if kind == _ENDED:
        over = _decode(body, _Over)
        return ProgramExit(over.status, over.reason)
    raise ProtocolViolation("attach", f"a frame of the unknown kind {kind!r}")
