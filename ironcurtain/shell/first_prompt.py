"""The first prompt of a shell without a person at it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import SessionError

FIRST_PROMPT_SECONDS = 30.0
"""How long it may take."""


class FirstPrompt:
    """
    Waits for it.

    :param stop: ends a shell that does not show it.
    """

    def __init__(self, clock: IReactorTime, stop: Callable[[], Awaitable[None]]) -> None:
        self._clock, self._stop = clock, stop
        self._shown: Deferred[None] = Deferred()

    async def wait(self) -> None:
        """:raises SessionError: it was not shown in time, or the shell ended."""
        try:
            await self._shown.addTimeout(FIRST_PROMPT_SECONDS, self._clock)
        except TimeoutError:
            await self._stop()
            why = f"the shell showed no prompt with marks within {FIRST_PROMPT_SECONDS:.0f} s"
            raise SessionError("SESSION_INIT_FAILED", why) from None

    def shown(self) -> None:
        """A prompt was shown."""
        if not self._shown.called:
            self._shown.callback(None)

    def lost(self, reason: str) -> None:
        """:param reason: how the shell ended."""
        if not self._shown.called:
            self._shown.errback(SessionError("SESSION_INIT_FAILED", f"the shell ended: {reason}"))
