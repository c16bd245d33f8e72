"""Stop an agent that repeats one and the same call. Time is an argument."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from ironcurtain.home.settings import REPEATED_CALLS

WINDOW = 60.0
"""Seconds."""

REMEMBERED = 4096
"""How many different calls are watched at a time."""


@dataclass(slots=True)
class CircuitBreaker:
    """
    Counts calls by their digest.

    :param repeats: how often the same call may be made within the window.
    :param window: in seconds.
    """

    repeats: int = REPEATED_CALLS
    window: float = WINDOW
    _seen: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)

    def trips(self, digest: str, now: float) -> bool:
        """
        Count one more call.

        :param now: in seconds, on any clock that does not go back.
        :returns: whether it is one too many. Refused calls are not counted.
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
