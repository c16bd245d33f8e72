"""When a console fetches its data again, and how it calls its viewer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from ironcurtain.console.screen import ChannelScreen

REFRESH_SECONDS, MOST_REFRESH_SECONDS = 0.005, 0.1
"""
Minimum and maximum seconds between two refreshes. The time is tripled whenever :data:`MANY` changes arrived in between.
"""

MANY = 4
"""More changes than this between two refreshes are not caused by people."""

NO_TITLE = ("linux", "eterm-color")
"""Terminals that display a title sequence as text."""

_TITLE_SAVED, _TITLE_RESTORED = "\x1b[22;0t", "\x1b[23;0t"


class Refreshing:
    """
    Fetches one time after the other: changes that arrive meanwhile cause another time.

    :param fetch: fetches everything.
    :param failed: called with what it raises.
    """

    def __init__(
        self, clock: IReactorTime, fetch: Callable[[], Coroutine[Any, Any, None]], failed: Callable[[Failure], None]
    ) -> None:
        self._clock, self._fetch, self._failed = clock, fetch, failed
        self._current: Deferred[None] | None = None
        self._missed, self._rest = 0, REFRESH_SECONDS

    def begin(self) -> None:
        """Something may have changed."""
        if self._current is not None:
            self._missed += 1
            return
        self._missed = 0
        self._current = Deferred.fromCoroutine(self._once())
        self._current.addErrback(self._failed)
        self._current.addCallback(self._over)

    def cancel(self) -> None:
        """Fetch no more."""
        if self._current is not None:
            self._current.cancel()

    async def _once(self) -> None:
        await self._fetch()
        await deferLater(self._clock, self._rest)

    def _over(self, _: object) -> None:
        self._current = None
        self._rest = min(3 * self._rest, MOST_REFRESH_SECONDS) if self._missed >= MANY else REFRESH_SECONDS
        if self._missed:
            self.begin()


class Attention:
    """
    The bell and the title of the viewer's terminal.

    :param term: the terminal's name.
    """

    def __init__(self, screen: ChannelScreen, term: str) -> None:
        self._screen, self._has_title = screen, term not in NO_TITLE
        self._title, self._rings = "", False

    def begin(self) -> None:
        """Save the title that the terminal has."""
        if self._has_title:
            self._screen.write(_TITLE_SAVED)

    def end(self) -> None:
        """Give it back."""
        if self._has_title:
            self._screen.write(_TITLE_RESTORED)

    def ring(self) -> None:
        """Ring the bell with the next frame, which shows why."""
        self._rings = True

    def drawn(self, waiting: int) -> None:
        """A frame was drawn, in which so many calls wait."""
        if self._rings:
            self._rings = False
            self._screen.write("\a")
        title = f"ironcurtain: {waiting} waiting" if waiting else "ironcurtain"
        if self._has_title and title != self._title:
            self._title = title
            self._screen.write(f"\x1b]2;{title}\a")
