"""
The Engine's wire formats beyond plain HTTP: the answer that turns a connection into a stream, and frames in it.

The Engine's documentation of "attach" and "exec start" describes both: a frame is one byte that names the stream, three
zero bytes, four bytes of length, and the content. A terminal's stream has no frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ironcurtain.errors import ProtocolViolation

HEAD_LIMIT = 16 * 1024
"""Most bytes of the head of an answer (real ones have about 250)."""

STDOUT, STDERR = 1, 2
"""The streams of a program; 0 is its input and 3 an error of the Engine, which both count as STDERR here."""

_FRAME_HEAD = 8


def hijack_request(path: str, body: bytes) -> bytes:
    """:returns: the request that asks for a connection of our own."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def error_message(body: bytes) -> str:
    """:returns: what an error's body says, for people."""
    try:
        return msgspec.json.decode(body, type=dict[str, str])["message"]
    except (msgspec.DecodeError, KeyError):
        return body.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class Head:
    """
    The head of an answer.

    :param length: of the body that an ordinary answer has.
    :param rest: bytes that came after the head already.
    """

    status: int
    length: int
    rest: bytes


@dataclass(slots=True)
class HeadReader:
    """Collect bytes until one head is whole."""

    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Head | None:
        """
        Take bytes in any slicing.

        :returns: the head once it is whole; not to be called after that.
        :raises ProtocolViolation: it is no HTTP/1 answer, or too long.
        """
        self._buffer += data
        head, blank, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if len(head) > HEAD_LIMIT:
            raise ProtocolViolation("Docker Engine", f"a head of over {HEAD_LIMIT} bytes")
        return _parse(head, rest) if blank else None


def _parse(head: bytes, rest: bytes) -> Head:
    first, *lines = head.split(b"\r\n")
    version, _, status = first.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
        raise ProtocolViolation("Docker Engine", f"an answer that begins with {first[:40]!r}")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    length = fields.get(b"content-length", b"0")
    if not length.isdigit():
        raise ProtocolViolation("Docker Engine", f"a body of {length[:40]!r} bytes")
    return Head(int(status[:3]), int(length), rest)


@dataclass(slots=True)
class Demultiplexer:
    """Take a stream of frames apart, without waiting for whole frames."""

    _head: bytearray = field(default_factory=bytearray)
    _stream: int = STDOUT
    _left: int = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """
        Take bytes in any slicing.

        :returns: pieces in order, each with :data:`STDOUT` or :data:`STDERR`; none of them empty.
        :raises ProtocolViolation: it is no stream of frames.
        """
        pieces = []
        view, at = memoryview(data), 0
        while at < len(data):
            if self._left:
                piece = bytes(view[at : at + self._left])
                self._left -= len(piece)
                at += len(piece)
                pieces.append((self._stream, piece))
            else:
                wanted = _FRAME_HEAD - len(self._head)
                self._head += view[at : at + wanted]
                at += wanted
                self._begin()
        return pieces

    def _begin(self) -> None:
        if len(self._head) < _FRAME_HEAD:
            return
        if self._head[0] > 3 or any(self._head[1:4]):
            raise ProtocolViolation("Docker Engine", f"a frame that begins with {bytes(self._head)!r}")
        self._stream = STDOUT if self._head[0] == STDOUT else STDERR
        self._left = int.from_bytes(self._head[4:], "big")
        self._head.clear()
