"""
What passes between us and the process of the screen models: frames of four bytes for the length of what follows, most
significant first, and one message in MessagePack. Pure.

We give orders, many of them without an answer; the process says once that it is ready, and answers each request. Both
come in the order in which they were sent, so that an answer tells of exactly what was fed before its request.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from ironcurtain.errors import ProtocolViolation

MESSAGE_LIMIT = 32 * 1024 * 1024
"""Most bytes of one message (our choice; a redraw usually has some 70 KB)."""

_LENGTH = struct.Struct("!I")


class Open(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """
    Make a screen.

    :param screen: its number from now on, which no other one had before.
    :param history: most lines that are kept once they have scrolled off.
    """

    screen: int
    columns: int
    rows: int
    history: int


class Feed(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Output, cut anywhere."""

    screen: int
    data: bytes


class Resize(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The terminal has another size."""

    screen: int
    columns: int
    rows: int


class Redraw(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Answer with what draws the screen from scratch."""

    screen: int
    request: int
    columns: int
    rows: int
    history: bool


class Text(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Answer with the text, in UTF-8."""

    screen: int
    request: int


class Close(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Forget a screen."""

    screen: int


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The library is there and works: requests are answered at once from now on."""


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """What was asked for."""

    request: int
    data: bytes


class Refusal(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """There is no answer."""

    request: int
    reason: str


Request = Redraw | Text
Order = Open | Feed | Resize | Redraw | Text | Close
Reply = Ready | Answer | Refusal

M = TypeVar("M")

_encoder = msgspec.msgpack.Encoder()


def packed(message: Order | Reply) -> bytes:
    """:returns: one frame."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class MessageReader(Generic[M]):
    """Cuts what comes into messages; made by :func:`order_reader` and :func:`reply_reader`."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[M]) -> None:
        self._decoder = decoder
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[M]:
        """
        :param data: in any slicing.
        :raises ProtocolViolation: a message is too long, or none that may come.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MESSAGE_LIMIT:
                raise ProtocolViolation("screen", f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield self._decode(body)

    def _decode(self, body: bytes) -> M:
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise ProtocolViolation("screen", str(e)) from None


def order_reader() -> MessageReader[Order]:
    """:returns: the process's."""
    return MessageReader(msgspec.msgpack.Decoder(Order))


def reply_reader() -> MessageReader[Reply]:
    """:returns: ours."""
    return MessageReader(msgspec.msgpack.Decoder(Reply))
