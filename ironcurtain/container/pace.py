"""When the output of a program that writes without end is left waiting for a moment."""

from __future__ import annotations

BURST_SIZE = 64 * 1024
"""More than so many bytes without a pause are no screen drawn afresh, which a person waits for."""

QUIET_SECONDS = 0.02
"""How long a pause is."""

PIECE_SIZE = 64 * 1024
"""A smaller piece is all that there was to read."""

TURN_SIZE = 256 * 1024
"""Most bytes that are taken between two rests; the kernel keeps not much more."""

REST_SECONDS = 0.004
"""
How long a rest is. All who pass output on work in larger pieces then: a megabyte from a container costs
half of the processor time, and other sessions' keys find the reactor free.
"""


class Pace:
    """Hears of the output of one program, piece by piece."""

    def __init__(self) -> None:
        self._burst = self._turn = 0
        self._last = 0.0

    def rest_after(self, size: int, now: float) -> bool:
        """
        :param size: of a piece that came.
        :returns: whether nothing should be read now for :data:`REST_SECONDS`.
        """
        if now - self._last > QUIET_SECONDS:
            self._burst = self._turn = 0
        self._last = now
        self._burst += size
        self._turn += size
        if self._burst <= BURST_SIZE or (size >= PIECE_SIZE and self._turn < TURN_SIZE):
            return False
        self._turn = 0
        return True
