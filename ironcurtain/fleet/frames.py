"""
One stream of bytes between two hosts, as messages of a carrier that keeps their order but may lose some.

A lost or repeated message ends the stream: nothing is repaired here. What a receiver has not taken yet is bounded by a
window, whose use it reports in total, so that a later report stands for a lost one.
"""

from __future__ import annotations

import struct
from enum import IntEnum

import msgspec

from ironcurtain.errors import ProtocolViolation

WINDOW = 256 * 1024
"""Bytes that a sender may be ahead of its receiver."""

PIECE = 32 * 1024
"""Maximum bytes of data in one message; servers of NATS accept 1 MiB by default."""

_HEAD = struct.Struct("!BQ")


class Kind(IntEnum):
    """What a message says, and what its number counts."""

    OPEN = 1
    """The first one; its data is the name of the host that it comes from."""
    DATA = 2
    """The position of its first byte in the stream."""
    TAKEN = 3
    """All bytes that the receiver has taken so far."""
    END = 4
    """No more data follows; the length of the stream."""
    RESET = 5
    """The stream is over at once."""


class Frame(msgspec.Struct, frozen=True):
    """One message."""

    kind: Kind
    number: int = 0
    data: bytes = b""

    def encode(self) -> bytes:
        """:returns: the message."""
        return _HEAD.pack(self.kind, self.number) + self.data


def decode(message: bytes) -> Frame:
    """
    :returns: the frame in a message.
    :raises ProtocolViolation: there is none.
    """
    if not _HEAD.size <= len(message) <= _HEAD.size + PIECE:
        raise ProtocolViolation("fleet", f"a message of {len(message)} bytes")
    kind, number = _HEAD.unpack_from(message)
    if kind not in tuple(Kind):
        raise ProtocolViolation("fleet", f"a message of kind {kind}")
    return Frame(Kind(kind), number, message[_HEAD.size :])


class Sending:
    """
    The direction from here to the other host.

    :ivar waiting: bytes that wait for the receiver.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._queue = bytearray()
        self._sent = self._taken = 0
        self._ending = self._ended = False

    @property
    def waiting(self) -> int:
        """Bytes that wait until the receiver has taken others."""
        return len(self._queue)

    @property
    def over(self) -> bool:
        """Whether the end was sent."""
        return self._ended

    def write(self, data: bytes) -> list[Frame]:
        """:returns: what can be sent now; data after the end is dropped."""
        if not self._ending:
            self._queue += data
        return self._send()

    def end(self) -> list[Frame]:
        """:returns: what can be sent now; the end follows the data."""
        self._ending = True
        return self._send()

    def taken(self, total: int) -> list[Frame]:
        """
        :param total: as the receiver reports it.
        :raises ProtocolViolation: it is less than before, or more than was sent.
        """
        if not self._taken <= total <= self._sent:
            raise ProtocolViolation("fleet", f"{total} bytes were taken of {self._sent}")
        self._taken = total
        return self._send()

    def _send(self) -> list[Frame]:
        frames = []
        while self._queue and (room := min(self._taken + self._window - self._sent, PIECE)) > 0:
            piece = bytes(self._queue[:room])
            del self._queue[:room]
            frames.append(Frame(Kind.DATA, self._sent, piece))
            self._sent += len(piece)
        if self._ending and not self._queue and not self._ended:
            self._ended = True
            frames.append(Frame(Kind.END, self._sent))
        return frames


class Receiving:
    """The direction from the other host to here."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._received = self._taken = self._reported = 0
        self._ended = False

    def data(self, frame: Frame) -> bytes:
        """
        :returns: the data of a frame.
        :raises ProtocolViolation: one before it was lost, it comes after the end, or the window is exceeded; or it has
            none, and any number of those would fit.
        """
        if not frame.data:
            raise ProtocolViolation("fleet", "data without data")
        if self._ended or frame.number != self._received:
            raise ProtocolViolation("fleet", f"data at {frame.number}, where {self._received} is next")
        self._received += len(frame.data)
        if self._received - self._taken > self._window:
            raise ProtocolViolation("fleet", "more data than the window allows")
        return frame.data

    def end(self, frame: Frame) -> None:
        """:raises ProtocolViolation: data before it was lost, or it is the second one."""
        if self._ended or frame.number != self._received:
            raise ProtocolViolation("fleet", f"an end at {frame.number}, where {self._received} is next")
        self._ended = True

    def take(self, count: int) -> list[Frame]:
        """
        Count bytes as taken.

        :returns: a report, if the sender needs one now: once a quarter of the window was taken since the last.
        """
        self._taken += count
        if self._taken - self._reported < self._window // 4:
            return []
        self._reported = self._taken
        return [Frame(Kind.TAKEN, self._taken)]
