"""Limit the records of refusals, which a program can cause in any number; those beyond are counted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

REFUSALS: Final = 30
WINDOW: Final = 60.0
"""Maximum number of recorded refusals of one kind within so many seconds."""


class Meter(msgspec.Struct):
    """Allows so many events within so many seconds."""

    most: int
    seconds: float
    _times: deque[float] = msgspec.field(default_factory=deque)

    def take(self, now: float) -> bool:
        """:returns: whether one more is allowed, which is counted then."""
        while self._times and now - self._times[0] >= self.seconds:
            self._times.popleft()
        if len(self._times) >= self.most:
            return False
        self._times.append(now)
        return True


class RefusalRecords:
    """
    :param unrecorded: records that so many refusals of a kind were not recorded; called before the next one that is,
        and at the end.
    """

    def __init__(self, unrecorded: Callable[[str, int], None]) -> None:
        self._unrecorded = unrecorded
        self._meters: dict[str, Meter] = {}
        self._missed: dict[str, int] = {}

    def admit(self, kind: str, now: float) -> bool:
        """
        :param kind: one of few, which no program can make up.
        :param now: seconds of a monotonic clock.
        :returns: whether a refusal is to be recorded.
        """
        if not self._meters.setdefault(kind, Meter(REFUSALS, WINDOW)).take(now):
            self._missed[kind] = self._missed.get(kind, 0) + 1
            return False
        self._tell(kind)
        return True

    def end(self) -> None:
        """Record what was not, up to here."""
        for kind in list(self._missed):
            self._tell(kind)

    def _tell(self, kind: str) -> None:
        if count := self._missed.pop(kind, 0):
            self._unrecorded(kind, count)
