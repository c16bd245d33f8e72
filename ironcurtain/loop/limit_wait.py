"""Wait until a limit of the account that pays for the model ends."""

from __future__ import annotations

from contextlib import suppress

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater


class LimitWait:
    """The wait of a loop between two iterations, which an interruption ends."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._waiting: Deferred[None] | None = None

    async def until(self, ends: float) -> None:
        """
        Wait, unless :meth:`end` ends it.

        :param ends: in seconds on the clock.
        """
        self._waiting = deferLater(self._clock, max(0.0, ends - self._clock.seconds()))
        with suppress(CancelledError):
            await self._waiting
        self._waiting = None

    def end(self) -> None:
        """End the wait, if there is one."""
        if self._waiting is not None:
            self._waiting.cancel()
