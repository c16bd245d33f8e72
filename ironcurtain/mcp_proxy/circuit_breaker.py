"""Detect an agent that makes the same call over and over."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from ironcurtain.home.sections import REPEATED_CALLS

WINDOW = 60.0
"""Seconds."""

REMEMBERED = 4096
"""Maximum number of different calls that are tracked."""


class CircuitBreaker(msgspec.Struct):
    """
    Detects repeated calls, by digest.

    :param repeats: how often the same call may be made within the window.
    :param window: in seconds.
    """

    repeats: int = REPEATED_CALLS
    window: float = WINDOW
    _seen: OrderedDict[str, list[float]] = msgspec.field(default_factory=OrderedDict)

    def trips(self, digest: str, now: float) -> bool:
        """
        Count a call.

        :param now: seconds of a monotonic clock.
        :returns: whether the call exceeds the limit. Refused calls are not counted.
        """
        earlier = self._seen.pop(digest, None)
        times = [] if earlier is None else [time for time in earlier if now - time < self.window]
        self._seen[digest] = times
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        if len(times) >= self.repeats:
            return True
        times.append(now)
        return False
