"""Limit a rate, and count what exceeds it."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """
    :param most: maximum number per second.
    :param seconds: the time, in seconds; another unit changes the length of the interval accordingly.
    """

    def __init__(self, most: int, seconds: Callable[[], float]) -> None:
        self._most, self._seconds = most, seconds
        self._second, self._count, self._left_out = -1, 0, 0

    def take(self) -> int | None:
        """
        Count one item.

        :returns: ``None`` to drop it; else the number dropped since the last one that was let through.
        """
        if (second := int(self._seconds())) != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count > self._most:
            self._left_out += 1
            return None
        left_out, self._left_out = self._left_out, 0
        return left_out
