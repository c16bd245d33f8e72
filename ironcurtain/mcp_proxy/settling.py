"""Which MCP servers are still starting, and who waits for them; some wait for the agent themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

SLOW_SECONDS = 2.0
"""Seconds after which people are told that a server is still starting; most need less than one."""


class SlowStarts:
    """
    Tells which servers take long to start.

    :param unsettled: the names of those that are neither up nor failed to start; whoever changes it says so.
    :param tell: called with since when they start, in seconds of the clock, whenever there are others.
    """

    def __init__(self, unsettled: Set[str], clock: IReactorTime, tell: Callable[[Mapping[str, float]], None]) -> None:
        self._unsettled, self._clock, self._tell = unsettled, clock, tell
        self._slow: dict[str, float] = {}
        self._timers: list[IDelayedCall] = []

    def begin(self, names: Iterable[str]) -> None:
        """These start now."""
        self._timers.append(self._clock.callLater(SLOW_SECONDS, self._look, tuple(names), self._clock.seconds()))

    def settled(self, server: str) -> None:
        """A server is up, or failed to start."""
        if self._slow.pop(server, None) is not None:
            self._tell(dict(self._slow))

    def stop(self) -> None:
        """No more is told."""
        for timer in self._timers:
            if timer.active():
                timer.cancel()
        self._slow.clear()

    def _look(self, names: Sequence[str], since: float) -> None:
        if late := {name: since for name in names if name in self._unsettled}:
            self._slow |= late
            self._tell(dict(self._slow))


class Settling:
    """
    :param names: of all servers.
    :param slow: as ``tell`` of :class:`SlowStarts`.
    :ivar unsettled: the names of those that are neither up nor failed to start.
    """

    log = Logger()

    def __init__(self, names: Iterable[str], clock: IReactorTime, slow: Callable[[Mapping[str, float]], None]) -> None:
        self._names, self._clock = frozenset(names), clock
        self.unsettled = set(self._names)
        self._slow = SlowStarts(self.unsettled, clock, slow)
        self._started = clock.seconds()
        self._waiting: list[tuple[frozenset[str], Deferred[None]]] = []
        self._agent_capabilities: Mapping[str, Any] | None = None
        self._agent_waiting: list[tuple[str, Deferred[None]]] = []

    def begin(self) -> None:
        """They start now."""
        self._started = self._clock.seconds()
        self._slow.begin(self._names)

    def stop(self) -> None:
        """They are stopped."""
        self._slow.stop()

    def settle(self, server: str) -> None:
        """A server is up, or failed to start."""
        self.unsettled.discard(server)
        self._slow.settled(server)
        waiting, self._waiting = self._waiting, []
        for names, done in waiting:
            if names & self.unsettled:
                self._waiting.append((names, done))
            elif not done.called:
                done.callback(None)

    async def settled(self, seconds: float, servers: Iterable[str] | None = None) -> None:
        """
        Wait until each server is settled, but at most so many seconds after :meth:`begin`.

        :param servers: the names of those to wait for; ``None`` for all.
        """
        left = self._started + seconds - self._clock.seconds()
        names = self._names if servers is None else frozenset(servers)
        if names & self.unsettled and left > 0:
            done: Deferred[None] = Deferred()
            self._waiting.append((names, done))
            try:
                await done.addTimeout(left, self._clock)
            except Late:
                late = ", ".join(sorted(names & self.unsettled))
                self.log.info("continuing without MCP servers that are not up yet: {names}", names=late)

    def agent_is(self, capabilities: Mapping[str, Any]) -> None:
        """The first agent is known: servers that wait for one continue. Later agents change nothing."""
        if self._agent_capabilities is not None:
            return
        self._agent_capabilities = capabilities
        waiting, self._agent_waiting = self._agent_waiting, []
        if waiting:  # their time begins now
            self._started = self._clock.seconds()
            names = [name for name, _ in waiting]
            self.unsettled.update(names)
            self._slow.begin(names)
        for _, known in waiting:
            known.callback(None)

    async def agent_capabilities(self, server: str, waits: bool) -> Mapping[str, Any]:
        """
        :param waits: whether the server cannot start before the agent is known.
        :returns: the agent's capabilities, as far as they are known.
        """
        if waits and self._agent_capabilities is None:
            known: Deferred[None] = Deferred()
            self._agent_waiting.append((server, known))
            self.settle(server)  # an agent that starts must not wait for what waits for the agent
            await known
        return self._agent_capabilities or {}
