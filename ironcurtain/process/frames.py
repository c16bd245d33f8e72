"""
The protocol of worker processes: frames of four bytes for the length, most significant first, and one message in
MessagePack.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from ironcurtain.errors import ProtocolViolation

_LENGTH = struct.Struct("!I")

M = TypeVar("M")

_encoder = msgspec.msgpack.Encoder()


def packed(message: msgspec.Struct) -> bytes:
    """:returns: one frame."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class MessageReader(Generic[M]):
    """
    Splits a byte stream into messages.

    :param protocol: its name, for errors.
    :param decoder: decodes the valid messages.
    :param limit: maximum size in bytes of a message.
    """

    def __init__(self, protocol: str, decoder: msgspec.msgpack.Decoder[M], limit: int) -> None:
        self._protocol, self._decoder, self._limit = protocol, decoder, limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[M]:
        """
        :param data: in any slicing.
        :raises ProtocolViolation: a message is too long, or invalid.
        """
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self._limit:
                raise ProtocolViolation(self._protocol, f"a message of {length} bytes")
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
            raise ProtocolViolation(self._protocol, str(e)) from None
