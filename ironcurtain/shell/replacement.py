"""Notice that another program has taken the place of the shell."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

EXEC_SECONDS = 0.5
"""How long after Enter it is looked."""


class ReplacementWatch:
    """
    Looks at a shell some time after Enter.

    :param replaced: returns whether another program has taken its place.
    :param found: called if one has.
    """

    def __init__(self, clock: IReactorTime, replaced: Callable[[], bool], found: Callable[[], None]) -> None:
        self._clock, self._replaced, self._found = clock, replaced, found
        self._call: IDelayedCall | None = None

    def entered(self) -> None:
        """Enter was pressed."""
        if self._call is None or not self._call.active():
            self._call = self._clock.callLater(EXEC_SECONDS, self._look)

    def stop(self) -> None:
        """The shell ended."""
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _look(self) -> None:
        if self._replaced():
            self._found()
