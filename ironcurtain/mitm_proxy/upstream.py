"""
The connections of one session to one provider.

Each goes to an allowed address, is verified before it is used, and serves one exchange at a time. Unused connections
are kept for a while.
"""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHandshakeListener, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.tls import Side
from ironcurtain.services.stream import FlowSignal


class UpstreamUser(typing.Protocol):
    """The user of a connection."""

    def upstream_data(self, data: bytes) -> None:
        """Bytes of the response arrived."""

    def upstream_full(self, full: bool) -> None:
        """The provider stopped or resumed reading."""

    def upstream_lost(self, reason: Failure) -> None:
        """The connection is lost."""


class UpstreamOwner(typing.Protocol):
    """Keeps unused connections."""

    def lost(self, upstream: Upstream) -> None:
        """A connection is lost."""


@implementer(IHandshakeListener)
class Upstream(Protocol):
    """
    :param side: the proxy's side of it.
    :param keeper: notified when the connection is lost.
    """

    def __init__(self, side: Side, keeper: UpstreamOwner) -> None:
        self._keeper = keeper
        self.user: UpstreamUser | None = None
        self.idle_since = 0.0
        """When it was last given back; seconds of the clock."""
        self.ready: Deferred[Upstream] = Deferred(lambda _: self.abort())
        """Fires once the provider's certificate is verified; nothing is sent before."""
        self._tls = side.wrap(self)

    @property
    def below(self) -> Protocol:
        """The protocol that takes the encrypted bytes."""
        below: Protocol = self._tls
        return below

    def handshakeCompleted(self) -> None:
        """The certificate is valid. Twisted's TLS also calls this after it has found a mismatch of names."""
        if self._tls.disconnecting:
            return
        self._tls.registerProducer(FlowSignal(self._full), True)
        self.ready.callback(self)

    def write(self, data: bytes) -> None:
        """Send bytes of a request."""
        self._tls.write(data)

    def pause(self, paused: bool) -> None:
        """Pause or resume reading from the provider."""
        transport: Any = self._tls
        if paused:
            transport.pauseProducing()
        else:
            transport.resumeProducing()

    def close(self) -> None:
        """Close an unused connection with ``close_notify``, without waiting for the provider's."""
        self._tls.unregisterProducer()
        self._tls.loseConnection()
        self.abort()

    def abort(self) -> None:
        """Abort at once."""
        if self.connected:
            self._tls.transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:
        if self.user is None:
            self.abort()  # no request is open: these bytes must not become part of a response
        else:
            self.user.upstream_data(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.connected = 0
        self._keeper.lost(self)
        user, self.user = self.user, None
        if user is not None:
            user.upstream_lost(reason)
        elif not self.ready.called:
            self.ready.errback(reason)

    def _full(self, full: bool) -> None:
        if self.user is not None:
            self.user.upstream_full(full)


class Waiter(typing.Protocol):
    """Waits for a connection."""

    def connected(self, upstream: Upstream) -> None:
        """The connection is ready. The waiter has to give it back or abort it."""

    def unreachable(self, reason: Failure) -> None:
        """There is no connection."""


class UpstreamPool:
    """
    Connections are never shared between sessions or providers, and are kept only while no message is in progress.

    :param dial: opens a connection.
    """

    def __init__(
        self, dial: Callable[[UpstreamOwner], Deferred[Upstream]], clock: IReactorTime, limits: MitmLimits
    ) -> None:
        self._dial, self._clock, self._limits = dial, clock, limits
        self._idle: list[Upstream] = []
        self._waiting: deque[Waiter] = deque()
        self._dialling: set[Deferred[Upstream]] = set()
        self._closed = False

    def take(self, waiter: Waiter) -> None:
        """Give a connection to a waiter, at once if one is unused."""
        if self._idle:
            waiter.connected(self._idle.pop())
            return
        self._waiting.append(waiter)
        if len(self._dialling) < len(self._waiting):
            self._open(wanted=True)

    def forget(self, waiter: Waiter) -> None:
        """The waiter no longer waits."""
        if waiter in self._waiting:
            self._waiting.remove(waiter)

    def prepare(self) -> None:
        """Open a connection in advance for an expected request."""
        if not self._idle and not self._dialling:
            self._open(wanted=False)

    def give_back(self, upstream: Upstream) -> None:
        """A connection has completed its exchange."""
        upstream.user = None
        if self._waiting:
            self._waiting.popleft().connected(upstream)
        elif self._closed or len(self._idle) >= self._limits.provider_idle:
            upstream.close()
        else:
            upstream.idle_since = self._clock.seconds()
            self._idle.append(upstream)

    def lost(self, upstream: Upstream) -> None:
        """See :class:`~ironcurtain.mitm_proxy.upstream.UpstreamOwner`."""
        if upstream in self._idle:
            self._idle.remove(upstream)

    def sweep(self, now: float) -> None:
        """Close connections that were unused for too long. Call this regularly; time in seconds of the clock."""
        since = now - self._limits.provider_idle_seconds
        for upstream in [idle for idle in self._idle if idle.idle_since <= since]:
            self._idle.remove(upstream)
            upstream.close()

    def close(self) -> None:
        """Close all unused connections, and open no new ones."""
        self._closed = True
        for dialling in list(self._dialling):
            dialling.cancel()
        for upstream in list(self._idle):
            upstream.abort()
        self._idle.clear()

    def _open(self, wanted: bool) -> None:
        """:param wanted: whether a waiter needs it. If not, and it fails, it is tried again for later waiters."""
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
