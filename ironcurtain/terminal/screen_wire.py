"""
What passes between us and the process of the screen models, as :mod:`~ironcurtain.process.frames`.

We give orders, many of them without an answer; the process says once that it is ready, and answers each request. Both
come in the order in which they were sent, so that an answer tells of exactly what was fed before its request.
"""

from __future__ import annotations

import msgspec

from ironcurtain.process.frames import MessageReader, packed
from ironcurtain.terminal.sequences import ABORT, PLAIN

MESSAGE_LIMIT = 32 * 1024 * 1024
"""Most bytes of one message (a redraw usually has some 100 KB)."""


class OpenScreen(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """
    Make a screen.

    :param screen: its number from now on, which no other one had before.
    """

    screen: int
    columns: int
    rows: int


class FeedScreen(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Output, cut anywhere."""

    screen: int
    data: bytes


class ResizeScreen(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The terminal has another size."""

    screen: int
    columns: int
    rows: int


class RedrawScreen(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Answer with what draws the screen from scratch."""

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
    """The library is there and works: requests are answered at once from now on."""


class ScreenAnswer(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """What was asked for."""

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
    """:returns: the process's."""
    return MessageReader("screen", msgspec.msgpack.Decoder(ScreenOrder), MESSAGE_LIMIT)


def reply_reader() -> MessageReader[ScreenReply]:
    """:returns: ours."""
    return MessageReader("screen", msgspec.msgpack.Decoder(ScreenReply), MESSAGE_LIMIT)


GAP = ABORT + PLAIN
"""Comes before output that is not the continuation of what came before: modes stay, the style of writing does not."""


class ScreenOutbox:
    """
    Orders and output, in their order.

    :ivar waiting: how many bytes there are.
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
        """Let output wait."""
        self._output.append(data)
        self.waiting += len(data)

    def put(self, order: OpenScreen | ResizeScreen | ScreenRequest) -> None:
        """Let an order wait."""
        if isinstance(order, ScreenRequest):
            self._requests.append(order.request)
        else:
            self._lasting[type(order)] = order
        self._seal()
        self._frames.append(packed(order))
        self.waiting += len(self._frames[-1])

    def take(self) -> bytes:
        """:returns: all that waits, in frames; it waits no more."""
        self._seal()
        taken = b"".join(self._frames)
        self._clear()
        return taken

    def restart(self, last: bytes) -> list[int]:
        """
        Let nothing wait but what makes the best of it.

        :param last: the last output.
        :returns: requests that waited, and will not be sent.
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
