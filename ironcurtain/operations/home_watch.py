"""Notices changes of sessions and escalations, of any process of a home."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import zip_longest
from typing import Any

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import LoopingCall

from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home.registry import SessionEntry
from ironcurtain.operations.api import OnEvent
from ironcurtain.session.events import (
    EscalationApproved,
    EscalationClosed,
    EscalationCounted,
    EscalationRaised,
    Missed,
    PermissionRevoked,
    Stamped,
    StateChanged,
)

GATHER_SECONDS = 0.02
"""
Seconds for which changes are collected before a redraw; too short to be noticed. A new escalation is reported at once,
since a frame drawn just before would delay it.
"""

OF_A_HOST, OF_OTHERS = 64, 256
"""
Maximum number of sessions of one other host, and of all of them, whose events are followed: each takes two descriptors
of this process, which serves others as well. While there are more of them, changes are told of at intervals, too.
"""

INTERVAL_SECONDS = 5.0
"""Of such changes."""

NEWS = (
    StateChanged,
    EscalationRaised,
    EscalationCounted,
    EscalationApproved,
    EscalationClosed,
    PermissionRevoked,
    Missed,
)
"""Events that change the lists."""


def followed(entries: Iterable[SessionEntry]) -> list[SessionEntry]:
    """:returns: those of this host, and as many of the newest ones of others as are followed."""
    ours, others = list[SessionEntry](), dict[str, list[SessionEntry]]()
    for entry in entries:
        (others.setdefault(entry.host, []) if entry.host else ours).append(entry)
    newest = [sorted(found, key=lambda entry: -entry.number)[:OF_A_HOST] for found in others.values()]
    in_turn = [entry for row in zip_longest(*newest) for entry in row if entry is not None]
    return ours + in_turn[:OF_OTHERS]


class HomeWatch:
    """
    Watches the registry and every session in it.

    :param follow: begins to follow a session, and returns a function that ends it.
    """

    def __init__(
        self,
        reactor: Any,
        directory: Any,
        entries: Callable[[], list[SessionEntry]],
        follow: Callable[[SessionEntry, OnEvent, Callable[[], None]], Callable[[], None]],
        on_change: Callable[[], None],
    ) -> None:
        self._reactor, self._directory, self._entries = reactor, directory, entries
        self._follow, self._on_change = follow, on_change
        self._followed: dict[tuple[str, str], Callable[[], None]] = {}
        self._pending: IDelayedCall | None = None
        self._at_intervals = LoopingCall(self._schedule)
        self._at_intervals.clock = reactor
        self._watcher: DirectoryWatcher | None = None

    def start(self) -> None:
        """Start watching, and notify once."""
        self._watcher = DirectoryWatcher(self._reactor)
        self._watcher.add(self._directory, self._look)
        self._look()

    def stop(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        if self._at_intervals.running:
            self._at_intervals.stop()
        if self._pending is not None and self._pending.active():
            self._pending.cancel()
        followed, self._followed = self._followed, {}
        for stop in followed.values():
            stop()

    def _look(self) -> None:
        known = self._entries()
        entries = {(entry.host, entry.session_id): entry for entry in followed(known)}
        if self._at_intervals.running != (len(entries) < len(known)):
            self._at_intervals.stop() if self._at_intervals.running else self._at_intervals.start(INTERVAL_SECONDS)
        for name in self._followed.keys() - entries.keys():
            self._followed.pop(name)()
        for name in entries.keys() - self._followed.keys():
            self._followed[name] = lambda: None  # following may fail before it returns its end function
            stop = self._follow(entries[name], self._heard, partial(self._lost, name))
            if name in self._followed:
                self._followed[name] = stop
        self._schedule()

    def _lost(self, name: tuple[str, str]) -> None:
        """Forget a session; the next look at the registry tries again."""
        self._followed.pop(name, None)

    def _heard(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, NEWS):
            self._schedule(at_once=isinstance(stamped.event, EscalationRaised))

    def _schedule(self, at_once: bool = False) -> None:
        if self._watcher is None:
            return
        if self._pending is None:
            self._pending = self._reactor.callLater(0 if at_once else GATHER_SECONDS, self._notify)
        elif at_once:
            self._pending.reset(0)

    def _notify(self) -> None:
        self._pending = None
        self._on_change()
