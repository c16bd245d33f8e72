"""Notice that a shell shows no marks: from its start, or since another program has taken its place."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

EXEC_SECONDS = 0.5
"""How long after Enter it is looked whether another program has taken the place of the shell."""

LOOK_SECONDS = 0.5
"""How often it is looked whether a shell that takes long is at a prompt without marks."""


class MarksWatch:
    """
    :param replaced: returns whether another program has taken its place.
    :param edits: returns whether a line editor waits for keys: a shell that still reads its files has none.
    :param missing: called if there are no marks.
    """

    def __init__(
        self,
        clock: IReactorTime,
        replaced: Callable[[], bool],
        edits: Callable[[], bool],
        missing: Callable[[], None],
    ) -> None:
        self._clock, self._replaced, self._edits, self._missing = clock, replaced, edits, missing
        self._first: IDelayedCall | None = None
        self._look: IDelayedCall | None = None
        self._gone = False

    def begin(self, seconds: float, possible: bool) -> None:
        """
        :param seconds: how long the shell has for its first prompt with marks.
        :param possible: whether it can have marks, so that it may only be slow.
        """
        self._first = self._clock.callLater(seconds, self._first_look if possible else self._tell)

    def prompted(self) -> bool:
        """
        It showed a prompt with marks.

        :returns: whether it was said that there are none.
        """
        gone, self._gone = self._gone, False
        first, self._first = self._first, None
        if first is not None and first.active():
            first.cancel()
        return gone

    def entered(self) -> None:
        """Enter was pressed."""
        starting = self._first is not None and self._first.active()
        if not starting and (self._look is None or not self._look.active()):
            self._look = self._clock.callLater(EXEC_SECONDS, self._looked)

    def stop(self) -> None:
        """The shell ended."""
        self.prompted()
        if self._look is not None and self._look.active():
            self._look.cancel()

    def _first_look(self, edited: bool = False) -> None:
        edits = self._edits()
        if self._replaced() or (edits and edited):  # twice: marks of a prompt may not have been read yet
            self._tell()
        else:
            self._first = self._clock.callLater(LOOK_SECONDS, self._first_look, edits)

    def _looked(self) -> None:
        if self._replaced():
            self._tell()

    def _tell(self) -> None:
        self._gone = True
        self._missing()
