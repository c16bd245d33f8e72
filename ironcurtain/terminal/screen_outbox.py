"""What waits to be sent to the process of the screen models, for one screen."""

from __future__ import annotations

from ironcurtain.process.frames import packed
from ironcurtain.terminal.restore import ABORT, PLAIN
from ironcurtain.terminal.screen_wire import Feed, Open, Request, Resize

GAP = ABORT + PLAIN
"""Comes before output that is not the continuation of what came before: modes stay, the style of writing does not."""


class Outbox:
    """
    Orders and output, in their order.

    :ivar waiting: how many bytes there are.
    """

    def __init__(self, opening: Open) -> None:
        self._screen = opening.screen
        self._frames: list[bytes] = []
        self._output: list[bytes] = []
        self._requests: list[int] = []
        self._lasting: dict[type, Open | Resize] = {}
        self.waiting = 0
        self.put(opening)

    def feed(self, data: bytes) -> None:
        """Let output wait."""
        self._output.append(data)
        self.waiting += len(data)

    def put(self, order: Open | Resize | Request) -> None:
        """Let an order wait."""
        if isinstance(order, Request):
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
            self._frames.append(packed(Feed(self._screen, b"".join(self._output))))
            self._output = []

    def _clear(self) -> None:
        self._frames, self._output, self._requests, self._lasting = [], [], [], {}
        self.waiting = 0
