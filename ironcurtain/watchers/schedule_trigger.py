"""Times of a schedule."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.watchers.cron import Cron
from ironcurtain.watchers.model import Event, Watcher

LONGEST_SLEEP = 60.0
"""Seconds after which the clock is read again: it may have been set, or the machine have slept."""

LATE_SECONDS = 120.0
"""A time that is noticed later than that, because the machine slept, was missed."""

MOST_MISSED = 1000
"""Missed times are counted up to here."""


def next_time(watcher: Watcher, moment: float) -> float | None:
    """:returns: when a schedule is due after a moment, in seconds since the epoch; ``None``: never."""
    if watcher.cron:
        return Cron.read(watcher.cron).after(moment)
    return (math.floor(moment / watcher.every) + 1) * watcher.every


def times(watcher: Watcher, since: float, until: float) -> list[float]:
    """:returns: when a schedule is due after ``since`` until ``until``, at most :data:`MOST_MISSED` times."""
    found: list[float] = []
    while len(found) < MOST_MISSED:
        due = next_time(watcher, found[-1] if found else since)
        if due is None or due > until:
            break
        found.append(due)
    return found


class ScheduleTrigger:
    """
    A :class:`~ironcurtain.watchers.trigger.Trigger` for times. Those that come while nothing follows them are counted,
    and not made up for.

    :param ticked: until when the schedule was followed before, in seconds since the epoch; 0: never.
    :param now: returns seconds since the epoch.
    :param tell: called with the time until which it is followed, and the number of times that were missed before.
    """

    def __init__(
        self,
        watcher: Watcher,
        clock: IReactorTime,
        now: Callable[[], float],
        ticked: float,
        tell: Callable[[float, int], None],
    ) -> None:
        self._watcher, self._clock, self._now, self._ticked, self._tell = watcher, clock, now, ticked, tell
        self._fire: Callable[[Event], None] = lambda event: None
        self._timer: IDelayedCall | None = None

    def start(self, fire: Callable[[Event], None]) -> None:
        """Count what was missed, and begin to follow the times."""
        self._fire, now = fire, self._now()
        self._tell(now, len(times(self._watcher, self._ticked, now)) if self._ticked else 0)
        self._ticked = now
        self._sleep()

    def settle(self) -> None:
        """A run changes no time."""

    def stop(self) -> None:
        """Follow it no longer."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _sleep(self) -> None:
        now = self._now()
        due = next_time(self._watcher, self._ticked)
        delay = LONGEST_SLEEP if due is None else min(max(due - now, 0.0), LONGEST_SLEEP)
        self._timer = self._clock.callLater(delay, self._wake)

    def _wake(self) -> None:
        now = self._now()
        if now < self._ticked:  # the clock was set back
            self._ticked = now
        if due := times(self._watcher, self._ticked, now):
            in_time = now - due[-1] <= LATE_SECONDS
            self._ticked = now
            self._tell(now, len(due) - in_time)
            if in_time:
                self._fire(Event({"time": time.strftime("%Y-%m-%d %H:%M", time.localtime(due[-1]))}))
        self._sleep()
