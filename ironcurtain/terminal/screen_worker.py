"""
The process of the screen models, ``python -I -m ironcurtain.terminal.screen_worker``: all terminal emulators of one
owner, which communicates over the socket that is its standard input.

The emulators are native code that processes untrusted output. This process holds no secrets, and its crash costs
nothing but exact redraws. It ends when its owner does.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from ironcurtain.process.confined import carry_out, run
from ironcurtain.process.frames import packed
from ironcurtain.terminal.ghostty_screen import GhosttyScreen
from ironcurtain.terminal.screen_wire import (
    MESSAGE_LIMIT,
    CloseScreen,
    FeedScreen,
    OpenScreen,
    RedrawScreen,
    ResizeScreen,
    ScreenAnswer,
    ScreenOrder,
    ScreenRefusal,
    ScreenReply,
    ScreenRequest,
    ScreensReady,
    order_reader,
)

NICE = 5
"""Its niceness: only viewers that attach wait for it, not those that are attached."""


class ScreenWorker:
    """Executes orders."""

    def __init__(self) -> None:
        self._screens: dict[int, GhosttyScreen] = {}
        self._failed: dict[int, str] = {}

    def handle(self, order: ScreenOrder) -> ScreenReply | None:
        """
        :returns: the answer, if one is requested.

        A failure in a screen ends that screen only.
        """
        try:
            return self._handle(order)
        except Exception as e:
            reason = self._failed.setdefault(order.screen, f"{type(e).__name__}: {e}")
            self._screens.pop(order.screen, None)
        return ScreenRefusal(order.request, reason) if isinstance(order, ScreenRequest) else None

    def _handle(self, order: ScreenOrder) -> ScreenReply | None:
        if isinstance(order, OpenScreen):
            self._screens[order.screen] = GhosttyScreen(order.columns, order.rows)
        elif isinstance(order, CloseScreen):
            self._screens.pop(order.screen, None)
            self._failed.pop(order.screen, None)
        elif isinstance(order, ScreenRequest):
            return _answer(self._screens[order.screen], order)
        elif order.screen in self._screens:
            _change(self._screens[order.screen], order)
        return None


def _change(screen: GhosttyScreen, order: FeedScreen | ResizeScreen) -> None:
    if isinstance(order, FeedScreen):
        screen.feed(order.data)
    else:
        screen.resize(order.columns, order.rows)


def _answer(screen: GhosttyScreen, request: ScreenRequest) -> ScreenReply:
    if isinstance(request, RedrawScreen):
        data = screen.redraw(request.columns, request.rows, request.history)
    else:
        data = screen.text().encode("utf-8", "replace")
    if len(data) > MESSAGE_LIMIT - 64:
        return ScreenRefusal(request.request, f"{len(data)} bytes are too many")
    return ScreenAnswer(request.request, data)


def try_it() -> None:
    """Use a little of everything, so that all of the library is loaded."""
    screen = GhosttyScreen(80, 24)
    screen.feed("\x1b[31mé\x1b[?1049h\x1b]8;;x\x1b\\y".encode())
    screen.redraw(80, 24, True)
    screen.text()


def serve(owner: socket.socket) -> None:
    """Execute orders until the connection ends."""
    screens = ScreenWorker()
    owner.sendall(packed(ScreensReady()))

    def handle(order: ScreenOrder) -> Iterator[ScreenReply]:
        if (reply := screens.handle(order)) is not None:
            yield reply

    carry_out(owner, order_reader(), handle)


if __name__ == "__main__":
    run(try_it, NICE, serve)
