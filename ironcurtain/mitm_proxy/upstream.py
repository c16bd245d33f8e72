"""One connection to a provider: to a vetted address, verified before it is used, for one exchange at a time."""

from __future__ import annotations

import typing
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.mitm_proxy.flow import FlowSignal
from ironcurtain.mitm_proxy.tls import Side


class User(typing.Protocol):
    """Who uses a connection now."""

    def upstream_data(self, data: bytes) -> None:
        """Bytes of the response."""

    def upstream_full(self, full: bool) -> None:
        """The provider does not read fast enough, or does again."""

    def upstream_lost(self, reason: Failure) -> None:
        """The connection is gone."""


class Keeper(typing.Protocol):
    """Who keeps the connections that nobody uses."""

    def lost(self, upstream: Upstream) -> None:
        """A connection is gone."""


@implementer(IHandshakeListener)
class Upstream(Protocol):
    """
    :param side: our side of it.
    :param keeper: told when the connection is gone.
    """

    def __init__(self, side: Side, keeper: Keeper) -> None:
        self._keeper = keeper
        self.user: User | None = None
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
