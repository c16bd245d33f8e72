"""
Where the playing of a recording is, and what is to be drawn when it goes on. Time is an input.

There are two times: that of the recording, which people see and name, and that of playing, in which long pauses are
shortened.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise

from ironcurtain.errors import UsageError
from ironcurtain.terminal.appearance import Appearance
from ironcurtain.terminal.cast import Cast

AGAIN_SECONDS = 1.0
"""Within this time after a marker, the one before it is the one before that."""

_TIME = re.compile(r"(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,7}(?:\.\d*)?)")
_RESET = "\x1bc"


class Replay:
    """
    :param speed: how many seconds of playing pass in one second.
    :param idle_limit: most seconds of a pause; ``None``: as the recording wants it.
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
        """Whether all has been played and nobody paused."""
        return self._next == len(self._due) and not self.paused

    @property
    def recorded(self) -> float:
        """Where it is, in the time of the recording."""
        before = bisect_right(self._due, self._position)
        start, shown = (self._times[before - 1], self._due[before - 1]) if before else (0.0, 0.0)
        return start + self._position - shown

    @property
    def wait(self) -> float | None:
        """Seconds until something is to be drawn; ``None``: nothing will be by itself."""
        if self.paused or self._next == len(self._due):
            return None
        return max(0.0, self._due[self._next] - self._position) / self._speed

    def begin(self, at: float = 0.0) -> str:
        """
        :param at: in the time of the recording.
        :returns: what draws the screen as it was then, in place of whatever the terminal shows.
        """
        before = bisect_right(self._times, at)
        shown, start = (self._due[before - 1], self._times[before - 1]) if before else (0.0, 0.0)
        following = self._due[before] if before < len(self._due) else shown
        self._position = min(shown + at - start, following)
        return self._redraw(before)

    def advance(self, seconds: float) -> str:
        """
        Time passes.

        :returns: what is to be drawn.
        """
        if self.paused:
            return ""
        self._position += seconds * self._speed
        if self._next < len(self._due) and self._position >= self._due[self._next] - 1e-9:
            self._position = max(self._position, self._due[self._next])
        return self._draw(bisect_right(self._due, self._position))

    def pause(self) -> None:
        """Stop, or go on."""
        self.paused = not self.paused

    def skip(self, seconds: float) -> str:
        """
        :param seconds: of playing; negative: back.
        :returns: what is to be drawn.
        """
        return self._go(self._position + seconds)

    def step(self) -> str:
        """
        Pause, and show the next thing that happened.

        :returns: what is to be drawn.
        """
        self.paused = True
        return self._go(self._due[self._next]) if self._next < len(self._due) else ""

    def to_marker(self, following: bool) -> str:
        """
        :param following: the next marker, not the one before; without one, nothing happens.
        :returns: what is to be drawn.
        """
        if following:
            found = bisect_right(self._markers, self._position)
            return self._go(self._markers[found]) if found < len(self._markers) else ""
        grace = 0.0 if self.paused else AGAIN_SECONDS * self._speed
        found = bisect_left(self._markers, self._position - grace)
        return self._go(self._markers[found - 1] if found else 0.0)

    def again(self) -> str:
        """:returns: what draws the screen as it is now, in place of whatever the terminal shows."""
        return self._redraw(self._next)

    def _go(self, position: float) -> str:
        self._position = min(max(position, 0.0), self._due[-1] if self._due else 0.0)
        shown = bisect_right(self._due, self._position)
        drawn = self._draw(shown) if shown >= self._next else self._redraw(shown)
        return drawn.replace("\a", "")

    def _redraw(self, shown: int) -> str:
        """From the last event before which nothing counts any more."""
        resets = bisect_left(self._resets, shown)
        self._next = self._resets[resets - 1] if resets else 0
        sizes = bisect_left(self._sizes, self._next)
        size = self._cast.events[self._sizes[sizes - 1]].size if sizes else None
        return (Appearance(*(size or self._cast.size)).begin() + self._draw(shown)).replace("\a", "")

    def _draw(self, shown: int) -> str:
        """Each event is made harmless once, in order: then going back is quick."""
        feed, resize = self._appearance.feed, self._appearance.resize
        for event in self._cast.events[len(self._drawn) : shown]:
            self._drawn.append(resize(*event.size) if event.size is not None else feed(event.output))
        drawn, self._next = self._drawn[self._next : shown], max(shown, self._next)
        return "".join(drawn)


def read_time(text: str) -> float:
    """
    :param text: seconds, minutes and seconds, or hours too: ``90``, ``1:30``, ``1:02:03.5``.
    :raises UsageError: it is none of them.
    """
    if (match := _TIME.fullmatch(text)) is None:
        raise UsageError(f"{text!r} is no time: write seconds (90), minutes (1:30) or hours (1:02:03)")
    return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + float(match[3])


def show_time(seconds: float) -> str:
    """:returns: a time as :func:`read_time` takes it, in full seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
