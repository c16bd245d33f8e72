"""Let so many through in each second, and count the rest."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """
    :param most: how many come through.
    :param seconds: the time, in seconds; in other units, that is how long each span is.
    """

    def __init__(self, most: int, seconds: Callable[[], float]) -> None:
        self._most, self._seconds = most, seconds
        self._second, self._count, self._left_out = -1, 0, 0

    def take(self) -> int | None:
        """
        One more is there.

        :returns: ``None`` if it is left out; else how many were left out since the last that came through.
        """
        if (second := int(self._seconds())) != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count > self._most:
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        return left_out
