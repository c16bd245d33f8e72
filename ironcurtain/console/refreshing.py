"""When a console fetches its data again, and what it follows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater
from twisted.python.failure import Failure

from ironcurtain.operations.home_source import ConsoleSource
from ironcurtain.session.events import Stamped
from ironcurtain.view.chronicle import Chronicle

REFRESH_SECONDS, MOST_REFRESH_SECONDS = 0.005, 0.1
"""
Minimum and maximum seconds between two refreshes. The time is tripled whenever :data:`MANY` changes arrived in between.
"""

LOOK_SECONDS = 5.0
"""Seconds between refreshes without a notification of changes."""

MANY = 4
"""More changes than this between two refreshes are not caused by people."""


class Refreshing:
    """
    Fetches one time after the other: changes that arrive meanwhile cause another time.

    :param watch: calls back when something may have changed, until the function that it returns is called.
    :param fetch: fetches everything.
    :param failed: called with what it raises.
    """

    def __init__(
        self,
        clock: IReactorTime,
        watch: Callable[[Callable[[], None]], Callable[[], None]],
        fetch: Callable[[], Coroutine[Any, Any, None]],
        failed: Callable[[Failure], None],
    ) -> None:
        self._clock, self._watch, self._fetch, self._failed = clock, watch, fetch, failed
        self._current: Deferred[None] | None = None
        self._missed, self._rest = 0, REFRESH_SECONDS
        self._looking = LoopingCall(self.begin)
        self._looking.clock = clock
        self._unwatch: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to fetch."""
        self._unwatch = self._watch(self.begin)
        self._looking.start(LOOK_SECONDS)

    def stop(self) -> None:
        """Fetch no more."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
            self._looking.stop()
        if self._current is not None:
            self._current.cancel()

    def begin(self) -> None:
        """Something may have changed."""
        if self._unwatch is None:
            return
        if self._current is not None:
            self._missed += 1
            return
        self._missed = 0
        self._current = Deferred.fromCoroutine(self._once())
        self._current.addErrback(self._failed)
        self._current.addCallback(self._over)

    async def _once(self) -> None:
        await self._fetch()
        await deferLater(self._clock, self._rest)

    def _over(self, _: object) -> None:
        self._current = None
        self._rest = min(3 * self._rest, MOST_REFRESH_SECONDS) if self._missed >= MANY else REFRESH_SECONDS
        if self._missed:
            self.begin()


class Following:
    """
    The activity of the session that is chosen.

    :param changed: called when there is more of it.
    :ivar activity: ``None``: no session is chosen.
    """

    def __init__(self, source: ConsoleSource, changed: Callable[[], None]) -> None:
        self._source, self._changed = source, changed
        self._session = 0
        self._unfollow: Callable[[], None] = lambda: None
        self.activity: Chronicle | None = None

    def follow(self, session: int) -> None:
        """:param session: its number; 0: none."""
        if session == self._session:
            return
        self._unfollow()
        self._session, self._unfollow = session, lambda: None
        activity = self.activity = Chronicle() if session else None

        def heard(stamped: Stamped) -> None:
            if activity is not None and activity is self.activity:
                activity.add(stamped)
                self._changed()

        if session:
            self._unfollow = self._source.activity(session, heard)
