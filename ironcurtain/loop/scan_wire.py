"""
What passes between us and the process that reads a program's output, as :mod:`~ironcurtain.process.frames`.

It reads what nobody trusts, so that what it says is bounded, and counts for no more than the program's own words.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ironcurtain.process.frames import MessageReader

KEPT = 256 * 1024
"""Most characters of output that are kept as text: a long conversation."""

EVENT_LIMIT = 64 * 1024
"""Most characters of an event."""

EVENTS_LIMIT = 1000
"""Most events of one iteration; later ones are left out."""

BATCH = 64 * 1024
"""How many bytes of output are sent together."""

ORDER_LIMIT = 32 * 1024 * 1024
"""Most bytes of an order: a prompt has 4 MiB at most, and events are added to it."""

REPLY_LIMIT = 4 * KEPT + 4096
"""Most bytes of an answer: the text that is kept, in UTF-8, and what is round it."""


class ScanBegin(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """
    The first one.

    :param size: columns and rows of the program's terminal; ``None``: it has none.
    """

    promise: str
    prompt: str
    size: tuple[int, int] | None


class ScanOutput(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """What the program wrote, cut anywhere."""

    data: bytes


class ScanTyped(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """What a person typed."""

    data: bytes


class ScanResize(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The terminal has another size."""

    columns: int
    rows: int


class ScanEnd(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The last one: no more comes."""


class BytesRead(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """So many bytes of output were read."""

    size: Annotated[int, msgspec.Meta(ge=0)]


class EventFound(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The program said an event."""

    topic: Annotated[str, msgspec.Meta(max_length=EVENT_LIMIT)]
    payload: Annotated[str, msgspec.Meta(max_length=EVENT_LIMIT)]


class ScanResult(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """
    The answer to :class:`ScanEnd`.

    :param promised: whether the promise was made.
    :param text: the last of the output as plain text.
    """

    promised: bool
    text: Annotated[str, msgspec.Meta(max_length=KEPT)]


ScanOrder = ScanBegin | ScanOutput | ScanTyped | ScanResize | ScanEnd
ScanReply = BytesRead | EventFound | ScanResult


def order_reader() -> MessageReader[ScanOrder]:
    """:returns: the process's."""
    return MessageReader("scan", msgspec.msgpack.Decoder(ScanOrder), ORDER_LIMIT)


def reply_reader() -> MessageReader[ScanReply]:
    """:returns: ours."""
    return MessageReader("scan", msgspec.msgpack.Decoder(ScanReply), REPLY_LIMIT)


def sendable(text: str) -> str:
    """:returns: the same, with a replacement for what is no character: no terminal shows that either."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
