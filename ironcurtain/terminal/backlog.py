"""Work about output that has been shown already: in its order, and only once there is time for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

BACKLOG_LIMIT = 32 * 1024 * 1024
"""Most bytes of output that wait; when more would, what has waited longest is done at once."""

REST_SECONDS = 0.03
"""How long the work waits: whoever shows the output, or answers a key, is often given the same processor."""

SLICE = 1024 * 1024
"""How many bytes of output are dealt with in one turn of the reactor (some 10 ms)."""


class Backlog:
    """
    :param clock: the reactor, or a ``Clock``.
    :ivar size: how many bytes of output the work that waits is about.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._work: deque[tuple[int, Callable[[], None]]] = deque()
        self._timer: IDelayedCall | None = None
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._work)

    def add(self, size: int, work: Callable[[], None]) -> None:
        """
        Let something wait.

        :param size: of the output that it is about, in bytes.
        """
        self._work.append((size, work))
        self.size += size
        while self.size > BACKLOG_LIMIT:
            self._do()
        if self._timer is None and self._work:
            self._timer = self._clock.callLater(REST_SECONDS, self._due)

    def settle(self) -> None:
        """Do all that waits, now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._work:
            self._do()

    def _do(self) -> None:
        size, work = self._work.popleft()
        self.size -= size
        work()

    def _due(self) -> None:
        self._timer = None
        until = self.size - SLICE
        try:
            while self._work and self.size > until:
                self._do()
        finally:  # what one work raises is not the others' loss
            if self._work:
                self._timer = self._clock.callLater(0, self._due)
