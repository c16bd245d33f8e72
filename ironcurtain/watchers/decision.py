"""Whether and when events set a watcher off. Time is an argument."""

from __future__ import annotations

import msgspec

from ironcurtain.watchers.model import Event, Kind, Watcher
from ironcurtain.watchers.record import LINGER_SECONDS, Record

MOST_EVENTS = 20
"""Maximum number of events that one run is told of; of more, the number."""

LONGEST_WAIT = 10.0
"""For how many times the debounce events can put a run off."""

CHAIN_SECONDS = 10.0
"""Seconds after the run of another watcher in which events are still taken for that run's."""

LONGEST_CHAIN = 3
"""Maximum number of watchers that set one another off."""


class Batch(msgspec.Struct, frozen=True):
    """
    Events that set a watcher off together.

    :param more: number of further events, which are not kept.
    :param chain: names of the watchers whose runs may have caused them, in order, and its own at the end.
    """

    events: tuple[Event, ...]
    more: int
    chain: tuple[str, ...]


class Chains:
    """Which runs of watchers may have caused what happens now."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, ...]] = {}
        self._over: dict[str, tuple[float, tuple[str, ...]]] = {}

    def began(self, chain: tuple[str, ...]) -> None:
        """:param chain: of a batch whose run begins."""
        self._running[chain[-1]] = chain

    def ended(self, name: str, now: float) -> None:
        """The run of a watcher has ended."""
        if (chain := self._running.pop(name, None)) is not None:
            self._over[name] = now, chain

    def current(self, name: str, now: float) -> tuple[str, ...]:
        """:returns: the chain of another watcher that runs, or ran a moment ago: one that it is in, or the longest."""
        self._over = {other: kept for other, kept in self._over.items() if 0 <= now - kept[0] < CHAIN_SECONDS}
        chains = {other: chain for other, (_, chain) in self._over.items()} | self._running
        others = (chain for other, chain in chains.items() if other != name)
        return max(others, key=lambda chain: (name in chain, len(chain)), default=())


class Decision(msgspec.Struct):
    """
    Collects the events of one watcher until it runs. One run goes on at a time, and what happens meanwhile is its own.

    :ivar dropped: number of events that came too close to a run, to be noted in its record.
    """

    watcher: Watcher
    dropped: int = 0
    running: bool = False
    _events: list[Event] = msgspec.field(default_factory=list)
    _more: int = 0
    _digest: str = ""
    _chain: tuple[str, ...] = ()
    _first: float = 0.0
    _last: float = 0.0
    _ended: float = float("-inf")

    def add(self, event: Event, now: float, chain: tuple[str, ...] = ()) -> bool:
        """
        Something happened.

        :param chain: of :meth:`Chains.current`; the times of a schedule have no cause but the clock.
        :returns: whether it may set the watcher off; ``False``: it was dropped.
        """
        if self.watcher.trigger is Kind.SCHEDULE:
            chain = ()
        lingering = not event.digest and 0 <= now - self._ended < LINGER_SECONDS
        lingering = lingering and self.watcher.trigger is not Kind.SCHEDULE
        if self.running or lingering or self.watcher.name in chain or len(chain) >= LONGEST_CHAIN:
            self.dropped += 1
            return False
        if event.digest and event.digest == self._digest:
            return True
        if not self._events:
            self._first = now
        self._last, self._digest = now, event.digest
        self._chain = max(self._chain, chain, key=len)
        if len(self._events) < MOST_EVENTS:
            self._events.append(event)
        else:
            self._more += 1
        return True

    def due(self, record: Record, now: float) -> float | None:
        """:returns: when it may run; ``None``: not before something else happens."""
        if self.running or not self._events or record.paused:
            return None
        if now < self._last:  # the clock was set back
            self._first = self._last = now
        quiet = min(self._last + self.watcher.debounce, self._first + self.watcher.debounce * LONGEST_WAIT)
        return max(quiet, record.free_at(now, self.watcher.max_per_hour))

    @property
    def waiting(self) -> int:
        """Number of events that wait for a run."""
        return len(self._events) + self._more

    def take(self, record: Record, now: float, at_once: bool = False) -> Batch | None:
        """
        Begin a run, if it is due.

        :param at_once: whether it is due now, unless an hour has had its runs.
        :returns: what set it off; :meth:`ended` has to follow.
        """
        due = self.due(record, now)
        if at_once and due is not None:
            due = record.free_at(now, self.watcher.max_per_hour)
        if due is None or due > now:
            return None
        batch = Batch(tuple(self._events), self._more, (*self._chain, self.watcher.name))
        self.clear()
        self.running = True
        return batch

    def ended(self, now: float) -> None:
        """The run has ended, and the trigger has settled."""
        self.running, self._ended = False, now

    def clear(self) -> None:
        """Forget the events."""
        self._events.clear()
        self._more, self._digest, self._chain = 0, "", ()
