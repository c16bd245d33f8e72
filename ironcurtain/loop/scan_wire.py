"""
The protocol of the process that reads a program's output, in :mod:`~ironcurtain.process.frames`.

The process reads untrusted output, so its messages are bounded, and are trusted no more than the program's output
itself.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironcurtain.process.frames import MessageReader

KEPT = 256 * 1024
"""Maximum number of characters of output kept as text: a long conversation."""

EVENT_LIMIT = 64 * 1024
"""Maximum length in characters of an event."""

EVENTS_LIMIT = 1000
"""Most events of one iteration; later ones are left out."""

BATCH = 64 * 1024
"""Number of bytes of output sent together."""

ORDER_LIMIT = 32 * 1024 * 1024
"""Maximum size in bytes of an order: a prompt has 4 MiB at most, and events are added to it."""

REPLY_LIMIT = 4 * KEPT + 4096
"""Maximum size in bytes of an answer: the text in UTF-8, and its framing."""


class ScanBegin(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """
    The first order.

    :param size: columns and rows of the program's terminal; ``None``: it has none.
    """

    promise: str
    prompt: str
    size: tuple[int, int] | None


class ScanOutput(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The program's output, split anywhere."""

    data: bytes


class ScanTyped(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A person's input."""

    data: bytes


class ScanResize(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The terminal has a new size."""

    columns: int
    rows: int


class ScanEnd(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The last order: the output ended."""


class BytesRead(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """So many bytes of output were read."""

    size: Annotated[int, msgspec.Meta(ge=0)]


class EventFound(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The program printed an event."""

    topic: Annotated[str, msgspec.Meta(max_length=EVENT_LIMIT)]
    payload: Annotated[str, msgspec.Meta(max_length=EVENT_LIMIT)]


class ScanResult(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """
    The answer to :class:`ScanEnd`.

    :param promised: whether the promise was made.
    :param text: the end of the output as plain text.
    """

    promised: bool
    text: Annotated[str, msgspec.Meta(max_length=KEPT)]


ScanOrder = ScanBegin | ScanOutput | ScanTyped | ScanResize | ScanEnd
ScanReply = BytesRead | EventFound | ScanResult


def order_reader() -> MessageReader[ScanOrder]:
    """:returns: the process's reader of orders."""
    return MessageReader("scan", msgspec.msgpack.Decoder(ScanOrder), ORDER_LIMIT)


def reply_reader() -> MessageReader[ScanReply]:
    """:returns: the client's reader of replies."""
    return MessageReader("scan", msgspec.msgpack.Decoder(ScanReply), REPLY_LIMIT)


def sendable(text: str) -> str:
    """:returns: the text with invalid characters replaced: no terminal shows them either."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
