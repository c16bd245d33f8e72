"""When a program has been idle for too long. Pure; time is an input."""

from __future__ import annotations


class Idle:
    """
    :param limit: how many seconds without activity are too many; 0: none are.
    :param now: in seconds, from any clock that does not go back.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._limit, self._active = limit, now

    def active(self, now: float) -> None:
        """There was output, or a person's input; an earlier time than one that is known says nothing."""
        self._active = max(self._active, now)

    def left(self, now: float) -> float | None:
        """:returns: seconds until it is too long, not negative; 0: it is; ``None``: it never will be."""
        return max(0.0, self._active + self._limit - now) if self._limit else None
