"""
The connections of one session to one provider.

Each goes to a vetted address, is verified before it is used, and serves one exchange at a time. Those that nobody uses
are kept a while for the next request.
"""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHandshakeListener, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.tls import Side


@implementer(IPushProducer)
class FlowSignal:
    """
    Register this as a transport's producer to hear whether it takes more.

    A transport that closes calls ``stopProducing``. Were the other transport itself registered, it would close too,
    in the middle of what it has to say to somebody else.

    :param full: called with true when more has been written than the peer reads, with false when it has caught up.
    """

    def __init__(self, full: Callable[[bool], None]) -> None:
        self._full = full

    def pauseProducing(self) -> None:
        self._full(True)

    def resumeProducing(self) -> None:
        self._full(False)

    def stopProducing(self) -> None:
        pass


class UpstreamUser(typing.Protocol):
    """Who uses a connection now."""

    def upstream_data(self, data: bytes) -> None:
        """Bytes of the response."""

    def upstream_full(self, full: bool) -> None:
        """The provider does not read fast enough, or does again."""

    def upstream_lost(self, reason: Failure) -> None:
        """The connection is gone."""


class UpstreamOwner(typing.Protocol):
    """Who keeps the connections that nobody uses."""

    def lost(self, upstream: Upstream) -> None:
        """A connection is gone."""


@implementer(IHandshakeListener)
class Upstream(Protocol):
    """
    :param side: our side of it.
    :param keeper: told when the connection is gone.
    """

    def __init__(self, side: Side, keeper: UpstreamOwner) -> None:
        self._keeper = keeper
        self.user: UpstreamUser | None = None
        self.idle_since = 0.0
        """When it was last given back; seconds of the clock."""
        self.ready: Deferred[Upstream] = Deferred(lambda _: self.abort())
        """Fires once the provider's certificate is verified; until then nothing is sent."""
        self._tls = side.wrap(self)

    @property
    def below(self) -> Protocol:
        """What takes the encrypted bytes."""
        below: Protocol = self._tls
        return below

    def handshakeCompleted(self) -> None:
        """The certificate is valid; Twisted's TLS calls this, too, after it has found that it is for another name."""
        if self._tls.disconnecting:
            return
        self._tls.registerProducer(FlowSignal(self._full), True)
        self.ready.callback(self)

    def write(self, data: bytes) -> None:
        """Send bytes of a request."""
        self._tls.write(data)

    def pause(self, paused: bool) -> None:
        """Stop reading what the provider sends, or go on."""
        transport: Any = self._tls
        if paused:
            transport.pauseProducing()
        else:
            transport.resumeProducing()

    def close(self) -> None:
        """Say goodbye and close, without waiting for an answer to that; for a connection that nobody uses."""
        self._tls.unregisterProducer()
        self._tls.loseConnection()
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self.connected:
            self._tls.transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:
        if self.user is None:
            self.abort()  # nothing was asked: whatever this is, it must not become somebody's answer
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
    """Who waits for a connection."""

    def connected(self, upstream: Upstream) -> None:
        """Here it is; it is yours until you give it back or abort it."""

    def unreachable(self, reason: Failure) -> None:
        """There is none to be had."""


class UpstreamPool:
    """
    Connections are never shared between sessions or providers, and are kept only while both sides are between messages.

    :param dial: opens one.
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
        """See :class:`~ironcurtain.mitm_proxy.upstream.UpstreamOwner`."""
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
