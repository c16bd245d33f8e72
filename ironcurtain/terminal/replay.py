"""
Play a recording at a terminal: timing and keys.

There are two times: that of the recording, which is shown to people, and that of playing, in which long pauses are
shortened.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.errors import UsageError
from ironcurtain.terminal.keys import InputKind, TypedReader, stroke
from ironcurtain.terminal.model import TerminalChannel
from ironcurtain.terminal.recording import Cast
from ironcurtain.terminal.sequences import Appearance
from ironcurtain.text.display import shorten

AGAIN_SECONDS = 1.0
"""If the position is within so many seconds after a marker, "previous marker" means the one before that."""

_TIME = re.compile(r"(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,7}(?:\.\d*)?)")
_RESET = "\x1bc"


class Replay:
    """
    :param speed: seconds of playing time per second.
    :param idle_limit: maximum length of a pause in seconds; ``None``: as the recording asks.
    :ivar paused: whether time stands still.
    """

    def __init__(self, cast: Cast, *, speed: float = 1.0, idle_limit: float | None = None) -> None:
        self._cast, self._speed = cast, speed
        limit = cast.idle_limit if idle_limit is None else idle_limit
        self._times = [event.time for event in cast.events]
        pauses = [later - earlier for earlier, later in pairwise([0.0, *self._times])]
        self._due = list(accumulate(pauses if limit is None else (min(pause, limit) for pause in pauses)))
        self._markers = [due for due, event in zip(self._due, cast.events, strict=True) if event.marker]
        self._resets = [n for n, event in enumerate(cast.events) if _RESET in event.output]
        self._sizes = [n for n, event in enumerate(cast.events) if event.size is not None]
        self._position, self._next = 0.0, 0
        self._appearance, self._drawn = Appearance(*cast.size), list[str]()
        self.paused = False

    @property
    def over(self) -> bool:
        """Whether the end was reached, and playing is not paused."""
        return self._next == len(self._due) and not self.paused

    @property
    def recorded(self) -> float:
        """Position in the time of the recording."""
        before = bisect_right(self._due, self._position)
        start, shown = (self._times[before - 1], self._due[before - 1]) if before else (0.0, 0.0)
        return start + self._position - shown

    @property
    def wait(self) -> float | None:
        """Seconds until the next event; ``None``: there is none."""
        if self.paused or self._next == len(self._due):
            return None
        return max(0.0, self._due[self._next] - self._position) / self._speed

    def begin(self, at: float = 0.0) -> str:
        """
        :param at: position in the time of the recording.
        :returns: output that draws the screen at that position on any terminal.
        """
        before = bisect_right(self._times, at)
        shown, start = (self._due[before - 1], self._times[before - 1]) if before else (0.0, 0.0)
        following = self._due[before] if before < len(self._due) else shown
        self._position = min(shown + at - start, following)
        return self._redraw(before)

    def advance(self, seconds: float) -> str:
        """
        Let time pass.

        :returns: the output to draw.
        """
        if self.paused:
            return ""
        self._position += seconds * self._speed
        if self._next < len(self._due) and self._position >= self._due[self._next] - 1e-9:
            self._position = max(self._position, self._due[self._next])
        return self._draw(bisect_right(self._due, self._position))

    def pause(self) -> None:
        """Pause, or resume."""
        self.paused = not self.paused

    def skip(self, seconds: float) -> str:
        """
        :param seconds: of playing time; negative: back.
        :returns: the output to draw.
        """
        return self._go(self._position + seconds)

    def step(self) -> str:
        """
        Pause, and show the next event.

        :returns: the output to draw.
        """
        self.paused = True
        return self._go(self._due[self._next]) if self._next < len(self._due) else ""

    def to_marker(self, following: bool) -> str:
        """
        :param following: go to the next marker, else to the previous one. Without one, nothing happens.
        :returns: the output to draw.
        """
        if following:
            found = bisect_right(self._markers, self._position)
            return self._go(self._markers[found]) if found < len(self._markers) else ""
        grace = 0.0 if self.paused else AGAIN_SECONDS * self._speed
        found = bisect_left(self._markers, self._position - grace)
        return self._go(self._markers[found - 1] if found else 0.0)

    def again(self) -> str:
        """:returns: output that draws the current screen on any terminal."""
        return self._redraw(self._next)

    def _go(self, position: float) -> str:
        self._position = min(max(position, 0.0), self._due[-1] if self._due else 0.0)
        shown = bisect_right(self._due, self._position)
        drawn = self._draw(shown) if shown >= self._next else self._redraw(shown)
        return drawn.replace("\a", "")

    def _redraw(self, shown: int) -> str:
        """Redraw from the last event that clears everything before it."""
        resets = bisect_left(self._resets, shown)
        self._next = self._resets[resets - 1] if resets else 0
        sizes = bisect_left(self._sizes, self._next)
        size = self._cast.events[self._sizes[sizes - 1]].size if sizes else None
        return (Appearance(*(size or self._cast.size)).begin() + self._draw(shown)).replace("\a", "")

    def _draw(self, shown: int) -> str:
        """Events are sanitised once, in order, so that going back is fast."""
        feed, resize = self._appearance.feed, self._appearance.resize
        for event in self._cast.events[len(self._drawn) : shown]:
            self._drawn.append(resize(*event.size) if event.size is not None else feed(event.output))
        drawn, self._next = self._drawn[self._next : shown], max(shown, self._next)
        return "".join(drawn)


def read_time(text: str) -> float:
    """
    :param text: seconds, minutes and seconds, or with hours: ``90``, ``1:30``, ``1:02:03.5``.
    :raises UsageError: it has another form.
    """
    if (match := _TIME.fullmatch(text)) is None:
        raise UsageError(f"{text!r} is not a time: write seconds (90), minutes (1:30) or hours (1:02:03)")
    return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + float(match[3])


def show_time(seconds: float) -> str:
    """:returns: a time as :func:`read_time` takes it, in whole seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


SKIP_SECONDS = 5.0
"""Seconds that an arrow key skips."""

LONGEST_WAIT = 3600.0
"""Maximum seconds of one timer; then the next one follows."""

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in a shell."""

_ARROWS = {b"\x1b[C": "right", b"\x1bOC": "right", b"\x1b[D": "left", b"\x1bOD": "left"}


class ReplayViewer:
    """
    Shows a replay.

    :param terminal: in raw mode; closed with a status in the end.
    :param rows: the maximum rows of the recording: the line below is used for the status, if there is one.
    :param seconds: length of the recording.
    """

    def __init__(
        self, replay: Replay, terminal: TerminalChannel, clock: IReactorTime, rows: int, seconds: float
    ) -> None:
        self._replay, self._terminal, self._clock = replay, terminal, clock
        self._rows, self._seconds = rows, seconds
        self._typed = TypedReader()
        self._timer: IDelayedCall | None = None
        self._since = 0.0
        self._asking: float | None = None
        self._over = False

    def ask(self, question: str, at: float) -> None:
        """Show a question, and start at a position when a key is pressed."""
        self._asking = at
        self._terminal.write(question.encode())

    def begin(self, at: float) -> None:
        """
        Play. The terminal's previous contents scroll up, so that they are kept.

        :param at: position in the time of the recording.
        """
        self._asking = None
        self._show("\r\n" * self._terminal.size()[1] + self._replay.begin(at))
        self._go_on()

    def received(self, read: bytes) -> None:
        """Process keys."""
        for piece in self._typed.feed(read):
            if piece.kind is InputKind.TYPED:
                for key in _keys(piece.data):
                    self._pressed(key)

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has a new size, and its contents are undefined."""
        if self._asking is None and not self._over:
            self._pass_time()
            self._show(self._replay.again())
            self._go_on()

    def drained(self) -> None:
        """The terminal accepts output again: time goes on."""
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
        """:returns: output that shows a text below the recording, if there is a line."""
        rows = self._terminal.size()[1]
        return f"\x1b7\x1b[{rows};1H\x1b[0m{text}\x1b[K\x1b8" if rows > self._rows else ""

    def _pass_time(self) -> None:
        """Draw the events until now, unless time stands still."""
        if self._timer is not None:
            self._stop()
            self._show(self._replay.advance(self._clock.seconds() - self._since))

    def _go_on(self) -> None:
        """Wait for the next event; while the terminal is blocked, time stands still."""
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
    """:returns: the names of keys, of which one read can contain several."""
    if data in _ARROWS:
        return [_ARROWS[data]]
    if data.startswith(b"\x1b"):
        name, released = stroke(data)
        return [] if released else [name]
    return [stroke(bytes((byte,)))[0] for byte in data]
