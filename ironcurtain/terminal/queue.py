"""What waits for one viewer, up to a limit."""

from __future__ import annotations

from collections import deque

QUEUE_LIMIT = 4 * 1024 * 1024
"""Most bytes that wait for a viewer that does not read; then they are dropped, and it is drawn afresh."""


class OutputQueue:
    """Output in its order, until there is too much of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self.size = 0
        """How many bytes wait."""
        self.lost = False
        """Whether all that waited was dropped, and all that came since: the viewer has to be drawn afresh."""

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def add(self, data: bytes) -> None:
        """Let more wait."""
        if self.lost:
            return
        self._chunks.append(data)
        self.size += len(data)
        if self.size > self._limit:
            self.lose()

    def take(self) -> bytes:
        """:returns: what has waited longest."""
        data = self._chunks.popleft()
        self.size -= len(data)
        return data

    def lose(self) -> None:
        """Drop all that waits, and what comes until :meth:`clear`."""
        self.clear()
        self.lost = True

    def clear(self) -> None:
        """Forget all that waits; what comes is kept again."""
        self._chunks.clear()
        self.size = 0
        self.lost = False
