"""A recording at a terminal: what is drawn when, and what the keys do."""

from __future__ import annotations

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.terminal.keys import stroke
from ironcurtain.terminal.model import Channel
from ironcurtain.terminal.replay import Replay, show_time
from ironcurtain.terminal.typed import Kind, TypedReader
from ironcurtain.text.display import shorten

SKIP_SECONDS = 5.0
"""How far an arrow key goes."""

LONGEST_WAIT = 3600.0
"""Most seconds of one timer; then the next one follows."""

INTERRUPTED = 130
"""The status of what Ctrl-C ended, as a shell says it."""

_ARROWS = {b"\x1b[C": "right", b"\x1bOC": "right", b"\x1b[D": "left", b"\x1bOD": "left"}


class ReplayViewer:
    """
    :param terminal: in raw mode; closed with a status in the end.
    :param rows: the most that the recording ever needs: below them the terminal is ours, if there is a line left.
    :param seconds: how long the recording is.
    """

    def __init__(self, replay: Replay, terminal: Channel, clock: IReactorTime, rows: int, seconds: float) -> None:
        self._replay, self._terminal, self._clock = replay, terminal, clock
        self._rows, self._seconds = rows, seconds
        self._typed = TypedReader()
        self._timer: IDelayedCall | None = None
        self._since = 0.0
        self._asking: float | None = None
        self._over = False

    def ask(self, question: str, at: float) -> None:
        """Show a line, and begin at a time when a key is pressed."""
        self._asking = at
        self._terminal.write(question.encode())

    def begin(self, at: float) -> None:
        """
        Play. What the terminal shows moves up first, so that it can be scrolled back to.

        :param at: in the time of the recording.
        """
        self._asking = None
        self._show("\r\n" * self._terminal.size()[1] + self._replay.begin(at))
        self._go_on()

    def received(self, read: bytes) -> None:
        """Keys."""
        for piece in self._typed.feed(read):
            if piece.kind is Kind.TYPED:
                for key in _keys(piece.data):
                    self._pressed(key)

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has another size, and shows who knows what."""
        if self._asking is None and not self._over:
            self._pass_time()
            self._show(self._replay.again())
            self._go_on()

    def drained(self) -> None:
        """The terminal takes more: time goes on."""
        if self._asking is None and not self._over and self._timer is None:
            self._go_on()

    def lost(self) -> None:
        """The terminal is gone."""
        self._stop()

    def _pressed(self, key: str) -> None:
        if self._over:
            return
        if key in ("q", "ctrl-c"):
            self._close(INTERRUPTED if key == "ctrl-c" else 0)
        elif self._asking is not None:
            self.begin(self._asking)
        elif key in (" ", "right", "left", ".", "[", "]"):
            self._pass_time()
            self._act(key)
            self._go_on()

    def _act(self, key: str) -> None:
        if key == " ":
            self._replay.pause()
            self._show("" if self._replay.paused else self._line(""))
        elif key in ("right", "left"):
            self._show(self._replay.skip(SKIP_SECONDS if key == "right" else -SKIP_SECONDS))
        elif key == ".":
            self._show(self._replay.step())
        else:
            self._show(self._replay.to_marker(key == "]"))

    def _show(self, text: str) -> None:
        if self._replay.paused:
            text += self._line(f"\x1b[7m {self._status()} \x1b[0m")
        if text:
            self._terminal.write(text.encode("utf-8", "replace"))

    def _status(self) -> str:
        where = f"paused at {show_time(self._replay.recorded)} of {show_time(self._seconds)}"
        return shorten(f"{where}  space: go on  arrows: 5 s  . [ ]  q: end", self._terminal.size()[0] - 3)

    def _line(self, text: str) -> str:
        """:returns: what puts a text below the recording, if there is a line."""
        rows = self._terminal.size()[1]
        return f"\x1b7\x1b[{rows};1H\x1b[0m{text}\x1b[K\x1b8" if rows > self._rows else ""

    def _pass_time(self) -> None:
        """Draw what was due until now, if time did not stand still."""
        if self._timer is not None:
            self._stop()
            self._show(self._replay.advance(self._clock.seconds() - self._since))

    def _go_on(self) -> None:
        """Wait for what is due next; while the terminal takes nothing, time stands still."""
        self._stop()
        if self._replay.over:
            self._close(0)
        elif not self._terminal.blocked and (wait := self._replay.wait) is not None:
            self._since = self._clock.seconds()
            self._timer = self._clock.callLater(min(wait, LONGEST_WAIT), self._due)

    def _due(self) -> None:
        self._pass_time()
        self._go_on()

    def _stop(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _close(self, status: int) -> None:
        self._stop()
        self._over = True
        below = b"" if self._asking is not None else b"\x1b[%d;1H" % min(self._rows, self._terminal.size()[1])
        self._terminal.write(below + b"\r\n")
        self._terminal.close(status)


def _keys(data: bytes) -> list[str]:
    """:returns: the names of keys, several of which may have come at once."""
    if data in _ARROWS:
        return [_ARROWS[data]]
    if data.startswith(b"\x1b"):
        name, released = stroke(data)
        return [] if released else [name]
    return [stroke(bytes((byte,)))[0] for byte in data]
