"""A viewer's terminal: draws frames there, and passes on what is pressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import urwid
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from ironcurtain.console.layout import ClickTarget, Frame
from ironcurtain.console.refreshing import Attention
from ironcurtain.console.screen import Channel, ChannelScreen, ReactorLoop
from ironcurtain.console.state import Shown
from ironcurtain.console.widgets import PALETTE, FrameWidget

TICK_SECONDS = 1.0
"""Seconds between redraws, for the times on the screen."""

WHEEL_ROWS = 3
"""Rows that one step of a mouse wheel scrolls."""

_WHEEL = {4: -WHEEL_ROWS, 5: WHEEL_ROWS}
_NOT_PRESSED = frozenset(("focus in", "focus out", "begin paste", "end paste"))


class DisplayOwner(Protocol):
    """Makes the frames, and gets what is pressed."""

    def make(self, columns: int, rows: int) -> Frame:
        """:returns: the frame for a terminal of a size."""

    def drawn(self, shown: Shown) -> int:
        """A frame reached the terminal. :returns: how many calls wait, for the title."""

    def pressed(self, key: str, alone: bool) -> None:
        """:param alone: whether one read from the terminal gave nothing else."""

    def pasted(self, key: str) -> None:
        """A key came in a paste."""

    def clicked(self, target: ClickTarget) -> None:
        """A row was clicked."""

    def rolled(self, rows: int) -> None:
        """The wheel was turned down by so many rows."""

    def crashed(self) -> None:
        """Called in an exception handler."""


class Display:
    """
    :param channel: the viewer's terminal.
    :param environ: the viewer's ``TERM``, ``COLORTERM`` and others, from its terminal request.
    """

    def __init__(self, channel: Channel, clock: IReactorTime, environ: Mapping[str, str], owner: DisplayOwner) -> None:
        self._channel, self._owner = channel, owner
        self._loop = ReactorLoop(clock, owner.crashed)
        self._screen = ChannelScreen(channel, environ, self._drawn)
        widget = FrameWidget(self._make, self._pressed, self._clicked)
        self._main = urwid.MainLoop(
            widget, PALETTE, self._screen, handle_mouse=self._screen.has_mouse, event_loop=self._loop
        )
        self._attention = Attention(self._screen, environ.get("TERM", ""))
        self._frame, self._pasting = Frame((), Shown()), False
        self._ticking = LoopingCall(self._loop.wake)
        self._ticking.clock = clock
        self.wake, self.ring = self._loop.wake, self._attention.ring

    def start(self) -> None:
        """Take over the terminal."""
        self._main.start()
        self._attention.begin()
        self._ticking.start(TICK_SECONDS, now=False)

    def stop(self) -> None:
        """Draw no more."""
        self._ticking.stop()
        self._loop.stop()

    def close(self, status: int) -> None:
        """Restore the terminal, and close the channel."""
        self._main.stop()
        self._attention.end()
        self._screen.flush()
        self._channel.close(status)

    def received(self, data: bytes) -> None:
        """Process the terminal's input."""
        self._guarded(lambda: self._screen.received(data))

    def resized(self) -> None:
        """The terminal has a new size, which the channel knows."""
        self._guarded(self._screen.resized)

    def drained(self) -> None:
        """The channel accepts bytes again."""
        if self._screen.dirty:
            self._loop.wake()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            self._owner.crashed()
        self._loop.wake()

    def _make(self, columns: int, rows: int) -> Frame:
        self._frame = self._owner.make(columns, rows)
        return self._frame

    def _drawn(self) -> None:
        self._attention.drawn(self._owner.drawn(self._frame.shown))
        self._screen.flush()

    def _pressed(self, key: str) -> None:
        if key in _NOT_PRESSED:
            self._pasting = {"begin paste": True, "end paste": False}.get(key, self._pasting)
        elif self._pasting:
            self._owner.pasted(key)
        else:
            self._owner.pressed(key, self._screen.alone)

    def _clicked(self, button: int, column: int, row: int) -> None:
        if button in _WHEEL:
            self._owner.rolled(_WHEEL[button])
        elif button == 1 and (target := self._frame.at(column, row)) is not None:
            self._owner.clicked(target)
