"""Notice that a shell shows no marks: from its start, or since another program has taken its place."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

EXEC_SECONDS = 0.5
"""How long after Enter it is looked whether another program has taken the place of the shell; then twice as late."""

EXEC_LOOKS = 6
"""How often at most: on a busy machine a shell may take seconds for ``exec``."""

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
        if self._first is None or not self._first.active():
            self._look_no_more()
            self._look = self._clock.callLater(EXEC_SECONDS, self._looked, EXEC_SECONDS, EXEC_LOOKS - 1)

    def stop(self) -> None:
        """The shell ended."""
        self.prompted()
        self._look_no_more()

    def _first_look(self, edited: bool = False) -> None:
        edits = self._edits()
        if self._replaced() or (edits and edited):  # twice: marks of a prompt may not have been read yet
            self._tell()
        else:
            self._first = self._clock.callLater(LOOK_SECONDS, self._first_look, edits)

    def _looked(self, waited: float, looks: int) -> None:
        if self._replaced():
            self._tell()
        elif looks:
            self._look = self._clock.callLater(2 * waited, self._looked, 2 * waited, looks - 1)

    def _look_no_more(self) -> None:
        look, self._look = self._look, None
        if look is not None and look.active():
            look.cancel()

    def _tell(self) -> None:
        self._gone = True
        self._missing()
