"""A viewer's terminal: draws frames there, and passes on what is pressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall

from ironcurtain.console.layout import ClickTarget, Frame
from ironcurtain.console.screen import Channel, ChannelScreen
from ironcurtain.console.state import Shown
from ironcurtain.view.look import NO_TITLE, TICK_SECONDS, TITLE_RESTORED, TITLE_SAVED, titled

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
        self._attention = Attention(self._screen, environ.get("TERM", ""))
        self._frame, self._pasting = Frame((), Shown()), False
        self._ticking = LoopingCall(self.wake)
        self._ticking.clock = clock
        self._calls: dict[Callable[[], None], IDelayedCall] = {}

    def start(self) -> None:
        """Take over the terminal."""
        self._screen.start()
        if self._screen.has_mouse:
            self._screen.set_mouse_tracking()
        self._attention.begin()
        self._ticking.start(TICK_SECONDS)

    def wake(self) -> None:
        """Draw in the reactor's next turn, once for all changes until then."""
        if self._ticking.running and self._draw not in self._calls:
            self._later(0, self._draw)

    def ring(self) -> None:
        """Ring the bell with the next frame, which shows why."""
        self._attention.rings = True

    def stop(self) -> None:
        """Draw no more."""
        self._ticking.stop()
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()

    def close(self, status: int) -> None:
        """Restore the terminal, and close the channel."""
        self._screen.stop()
        self._attention.end()
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
        self._attention.drawn(self._told(self._frame.shown))
        self._screen.flush()

    def _parse(self, data: bytes = b"") -> None:
        found = self._screen.decode(data)
        if self._screen.waits:
            self._later(self._screen.complete_wait, self._parse)
        for each in found:
            if isinstance(each, str):
                self._pressed(each, len(found) == 1)
            elif each[0] == "mouse press":
                self._clicked(*each[1:])
        self.wake()

    def _pressed(self, key: str, alone: bool) -> None:
        if key in _NOT_PRESSED:
            self._pasting = {"begin paste": True, "end paste": False}.get(key, self._pasting)
        elif key == "ctrl l":
            self._screen.clear()
        else:
            self._heard(Pressed(key, alone, self._pasting))

    def _clicked(self, button: int, column: int, row: int) -> None:
        if button in _WHEEL:
            self._heard(Rolled(_WHEEL[button]))
        elif button == 1 and (target := self._frame.at(column, row)) is not None:
            self._heard(target)


class Attention:
    """
    The bell and the title of the viewer's terminal.

    :param term: the terminal's name.
    :ivar rings: whether the bell rings with the next frame.
    """

    def __init__(self, screen: ChannelScreen, term: str) -> None:
        self._screen, self._has_title = screen, term not in NO_TITLE
        self._title, self.rings = "", False

    def begin(self) -> None:
        """Save the title that the terminal has."""
        self._write(TITLE_SAVED)

    def end(self) -> None:
        """Give it back."""
        self._write(TITLE_RESTORED)

    def drawn(self, waiting: int) -> None:
        """A frame was drawn, in which so many calls wait."""
        if self.rings:
            self.rings = False
            self._screen.write("\a")
        title = titled(f": {waiting} waiting" if waiting else "")
        if title != self._title:
            self._title = title
            self._write(title)

    def _write(self, sequence: str) -> None:
        if self._has_title:
            self._screen.write(sequence)
