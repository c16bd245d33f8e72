"""A viewer's terminal: draws frames there, and passes on what is pressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall

from ironcurtain.console.layout import ClickTarget, Frame
from ironcurtain.console.screen import Channel, ChannelScreen
from ironcurtain.console.state import Shown
from ironcurtain.terminal.title import Title
from ironcurtain.view.look import TICK_SECONDS

WHEEL_ROWS = 3
"""Rows that one step of a mouse wheel scrolls."""

_WHEEL = {4: -WHEEL_ROWS, 5: WHEEL_ROWS}
_NOT_PRESSED = frozenset(("focus in", "focus out", "begin paste", "end paste"))


class Pressed(NamedTuple):
    """
    A key.

    :param key: as urwid names it.
    :param alone: whether one read from the terminal gave nothing else.
    :param pasted: whether it came in a paste.
    """

    key: str
    alone: bool
    pasted: bool


class Rolled(NamedTuple):
    """The wheel was turned down by so many rows."""

    rows: int


Heard = Pressed | Rolled | ClickTarget
"""What a viewer does."""


class Display:
    """
    :param channel: the viewer's terminal.
    :param environ: the viewer's ``TERM``, ``COLORTERM`` and others, from its terminal request.
    :param make: returns the frame for columns and rows.
    :param drawn: told what reached the terminal; returns how many calls wait, for the title.
    :param heard: told what the viewer does.
    :param crashed: called in an exception handler if any of these fails.
    """

    def __init__(
        self,
        channel: Channel,
        clock: IReactorTime,
        environ: Mapping[str, str],
        make: Callable[[int, int], Frame],
        drawn: Callable[[Shown], int],
        heard: Callable[[Heard], None],
        crashed: Callable[[], None],
    ) -> None:
        self._channel, self._clock = channel, clock
        self._make, self._told, self._heard, self._crashed = make, drawn, heard, crashed
        self._screen = ChannelScreen(channel, environ)
        self._title = Title(environ.get("TERM", ""), self._screen.write)
        self._frame, self._pasting = Frame((), Shown()), False
        self._ticking = LoopingCall(self.wake)
        self._ticking.clock = clock
        self._calls: dict[Callable[[], None], IDelayedCall] = {}

    def start(self) -> None:
        """Take over the terminal."""
        self._screen.start()
        if self._screen.has_mouse:
            self._screen.set_mouse_tracking()
        self._title.begin()
        self._ticking.start(TICK_SECONDS)

    def wake(self) -> None:
        """Draw in the reactor's next turn, once for all changes until then."""
        if self._ticking.running and self._draw not in self._calls:
            self._later(0, self._draw)

    def ring(self) -> None:
        """Ring the bell with the next frame, which shows why."""
        self._screen.write("\a")  # it is sent when a frame is

    def stop(self) -> None:
        """Draw no more."""
        self._ticking.stop()
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()

    def close(self, status: int) -> None:
        """Restore the terminal, and close the channel."""
        self._screen.stop()
        self._title.end()
        self._screen.flush()
        self._channel.close(status)

    def received(self, data: bytes) -> None:
        """Process the terminal's input."""
        if self._parse in self._calls:
            self._calls.pop(self._parse).cancel()
        self._guarded(lambda: self._parse(data))

    def resized(self) -> None:
        """The terminal has a new size, which the channel knows; the next frame is drawn completely."""
        self._screen.clear()
        self.wake()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        def begin() -> None:
            del self._calls[action]
            self._guarded(action)

        self._calls[action] = self._clock.callLater(seconds, begin)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            self._crashed()

    def _draw(self) -> None:
        if self._channel.blocked:
            return  # what is current then is drawn when it is drained
        columns, rows = self._screen.get_cols_rows()
        self._frame = self._make(columns, rows)
        self._screen.draw(self._frame, columns, rows)
        waiting = self._told(self._frame.shown)
        self._title.show(f": {waiting} waiting" if waiting else "")
        self._screen.flush()

    def _parse(self, data: bytes = b"") -> None:
        found = self._screen.decode(data)
        if self._screen.waits:
            self._later(self._screen.complete_wait, self._parse)
        for each in found:
            if isinstance(each, str):
                self._pressed(each, len(found) == 1)
            elif each[0] == "mouse press" and each[1] in _WHEEL:
                self._heard(Rolled(_WHEEL[each[1]]))
            elif each[:2] == ("mouse press", 1) and (target := self._frame.at(*each[2:])) is not None:
                self._heard(target)
        self.wake()

    def _pressed(self, key: str, alone: bool) -> None:
        if key in _NOT_PRESSED:
            self._pasting = {"begin paste": True, "end paste": False}.get(key, self._pasting)
        elif key == "ctrl l":
            self._screen.clear()
        else:
            self._heard(Pressed(key, alone, self._pasting))
