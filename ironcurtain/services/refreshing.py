"""Fetch something again whenever it may have changed, one time after the other, and not too often."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater
from twisted.python.failure import Failure

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
