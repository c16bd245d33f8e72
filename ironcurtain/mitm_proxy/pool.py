"""The connections of one session to one provider: those that nobody uses are kept a while for the next request."""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from ironcurtain.mitm_proxy.limits import Limits
from ironcurtain.mitm_proxy.upstream import Keeper, Upstream


class Waiter(typing.Protocol):
    """Who waits for a connection."""

    def connected(self, upstream: Upstream) -> None:
        """Here it is; it is yours until you give it back or abort it."""

    def unreachable(self, reason: Failure) -> None:
        """There is none to be had."""


class Pool:
    """
    Connections are never shared between sessions or providers, and are kept only while both sides are between messages.

    :param dial: opens one.
    """

    def __init__(self, dial: Callable[[Keeper], Deferred[Upstream]], clock: IReactorTime, limits: Limits) -> None:
        self._dial, self._clock, self._limits = dial, clock, limits
        self._idle: list[Upstream] = []
        self._waiting: deque[Waiter] = deque()
        self._dialling: set[Deferred[Upstream]] = set()
        self._closed = False

    def take(self, waiter: Waiter) -> None:
        """Give a connection to a waiter, at once if one is idle."""
        if self._idle:
            waiter.connected(self._idle.pop())
            return
        self._waiting.append(waiter)
        if len(self._dialling) < len(self._waiting):
            self._open(wanted=True)

    def forget(self, waiter: Waiter) -> None:
        """It does not wait any more."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def prepare(self) -> None:
        """A request is to be expected: have a connection ready for it."""
        if not self._idle and not self._dialling:
            self._open(wanted=False)

    def give_back(self, upstream: Upstream) -> None:
        """A connection is between two messages again."""
        upstream.user = None
        if self._waiting:
            self._waiting.popleft().connected(upstream)
        elif self._closed or len(self._idle) >= self._limits.provider_idle:
            upstream.close()
        else:
            upstream.idle_since = self._clock.seconds()
            self._idle.append(upstream)

    def lost(self, upstream: Upstream) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.Keeper`."""
        if upstream in self._idle:
            self._idle.remove(upstream)

    def sweep(self, now: float) -> None:
        """Close what was idle for too long. Call this now and then; time in seconds of the clock."""
        since = now - self._limits.provider_idle_seconds
        for upstream in [idle for idle in self._idle if idle.idle_since <= since]:
            self._idle.remove(upstream)
            upstream.close()

    def close(self) -> None:
        """Close all connections that nobody uses, and open no more."""
        self._closed = True
        for dialling in list(self._dialling):
            dialling.cancel()
        for upstream in list(self._idle):
            upstream.abort()
        self._idle.clear()

    def _open(self, wanted: bool) -> None:
        """:param wanted: whether a waiter is the reason; if not, and it fails, it is tried again for who came since."""
        dialling = self._dial(self)
        self._dialling.add(dialling)

        def ended(result: Upstream | Failure) -> None:
            self._dialling.discard(dialling)
            if not isinstance(result, Failure):
                self.give_back(result)
            elif self._waiting and not wanted and not self._closed:
                self._open(wanted=True)
            elif self._waiting:
                self._waiting.popleft().unreachable(result)

        dialling.addBoth(ended)
