"""
The protocol of the process of the screen models, in :mod:`~ironcurtain.process.frames`.

The client sends orders, many of them without an answer. The process reports once that it is ready, and answers each
request. Both keep their order, so an answer reflects exactly the output that was sent before its request.
"""

from __future__ import annotations

import msgspec

from ironcurtain.process.frames import MessageReader, packed
from ironcurtain.terminal.sequences import ABORT, PLAIN

MESSAGE_LIMIT = 32 * 1024 * 1024
"""Maximum size in bytes of a message (a redraw usually has some 100 KB)."""


class OpenScreen(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """
    Create a screen.

    :param screen: its number, which was never used before.
    """

    screen: int
    columns: int
    rows: int


class FeedScreen(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Output, split anywhere."""

    screen: int
    data: bytes


class ResizeScreen(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The terminal has a new size."""

    screen: int
    columns: int
    rows: int


class RedrawScreen(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Answer with a complete redraw of the screen."""

    screen: int
    request: int
    columns: int
    rows: int
    history: bool


class ReadScreen(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Answer with the text, in UTF-8."""

    screen: int
    request: int


class CloseScreen(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Forget a screen."""

    screen: int


class ScreensReady(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The library is loaded and works: from now on requests are answered at once."""


class ScreenAnswer(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The answer to a request."""

    request: int
    data: bytes


class ScreenRefusal(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """There is no answer."""

    request: int
    reason: str


ScreenRequest = RedrawScreen | ReadScreen
ScreenOrder = OpenScreen | FeedScreen | ResizeScreen | RedrawScreen | ReadScreen | CloseScreen
ScreenReply = ScreensReady | ScreenAnswer | ScreenRefusal


def order_reader() -> MessageReader[ScreenOrder]:
    """:returns: the process's reader of orders."""
    return MessageReader("screen", msgspec.msgpack.Decoder(ScreenOrder), MESSAGE_LIMIT)


def reply_reader() -> MessageReader[ScreenReply]:
    """:returns: the client's reader of replies."""
    return MessageReader("screen", msgspec.msgpack.Decoder(ScreenReply), MESSAGE_LIMIT)


GAP = ABORT + PLAIN
"""Sent before output that does not continue the earlier output: modes are kept, the text style is reset."""


class ScreenOutbox:
    """
    Orders and output, in order.

    :ivar waiting: number of queued bytes.
    """

    def __init__(self, opening: OpenScreen) -> None:
        self._screen = opening.screen
        self._frames: list[bytes] = []
        self._output: list[bytes] = []
        self._requests: list[int] = []
        self._lasting: dict[type, OpenScreen | ResizeScreen] = {}
        self.waiting = 0
        self.put(opening)

    def feed(self, data: bytes) -> None:
        """Queue output."""
        self._output.append(data)
        self.waiting += len(data)

    def put(self, order: OpenScreen | ResizeScreen | ScreenRequest) -> None:
        """Queue an order."""
        if isinstance(order, ScreenRequest):
            self._requests.append(order.request)
        else:
            self._lasting[type(order)] = order
        self._seal()
        self._frames.append(packed(order))
        self.waiting += len(self._frames[-1])

    def take(self) -> bytes:
        """:returns: everything queued, in frames; the queue is empty afterwards."""
        self._seal()
        taken = b"".join(self._frames)
        self._clear()
        return taken

    def restart(self, last: bytes) -> list[int]:
        """
        Replace the queue by the last output and what it requires.

        :param last: the last output.
        :returns: queued requests, which will not be sent.
        """
        dropped, lasting = self._requests, self._lasting
        self._clear()
        for order in lasting.values():
            self.put(order)
        self.feed(GAP + last)
        return dropped

    def _seal(self) -> None:
        if self._output:
            self._frames.append(packed(FeedScreen(self._screen, b"".join(self._output))))
            self._output = []

    def _clear(self) -> None:
        self._frames, self._output, self._requests, self._lasting = [], [], [], {}
        self.waiting = 0
