"""
Connections that are passed on as they are, byte for byte, once policy allows them: judge, dial, splice.

A client cannot be told why its connection is refused or cannot be made, since nothing is known of its protocol; it is
reset at once, as clients would otherwise wait for an answer.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress, IHalfCloseableProtocol, IProtocol
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.network.access import Destination
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.services.stream import FlowSignal, StreamTransport

AHEAD_LIMIT = 64 * 1024
"""Bytes that are read from one side before the other is connected; more wait at their sender."""


class Dialer(typing.Protocol):
    """Connects to hosts; see :class:`ironcurtain.network.dialling.Dialer`."""

    async def connect(self, host: str, port: int, protocol: IProtocol, *, private: bool = False) -> None:
        """
        Resolve a host, and connect a protocol to one of its allowed addresses.

        :param private: whether private addresses are allowed.
        """


class Splice:
    """
    Two connections of which each gets the bytes of the other. A side that does not read pauses the other one; the end
    of one side's bytes is passed on, and a reset resets the other.

    :param begun: called when :attr:`near` is connected.
    :param ended: called once, when both sides are disconnected, or one is and the other was never connected.
    :ivar near: the protocol of the client's connection.
    :ivar far: the protocol of the other one. Either can be connected first.
    """

    def __init__(self, begun: Callable[[], None] = lambda: None, ended: Callable[[], None] = lambda: None) -> None:
        self._ended, self._over = ended, False
        self.near, self.far = _End(self, begun), _End(self, lambda: None)
        self.near.other, self.far.other = self.far, self.near

    def reset(self) -> None:
        """Reset both connections."""
        for end in (self.near, self.far):
            end.reset()

    def end_lost(self) -> None:
        """For the ends: one was disconnected."""
        if not self._over and not (self.near.connected or self.far.connected):
            self._over = True
            self._ended()


@implementer(IHalfCloseableProtocol)
class _End(Protocol):
    """One of the two connections."""

    transport: StreamTransport
    other: _End

    def __init__(self, splice: Splice, begun: Callable[[], None]) -> None:
        self._splice, self._begun = splice, begun
        self._ahead = bytearray()
        """What was read before the other side was connected."""
        self._finished = self._closed = self._lost = False

    def connectionMade(self) -> None:
        if self._closed or self.other.lost:
            self.transport.abortConnection()
            return
        self.transport.registerProducer(FlowSignal(self.other.pause), True)
        self._begun()
        self.other.deliver()
        self.deliver()

    def dataReceived(self, data: bytes) -> None:
        if self.other.connected:
            self.other.transport.write(data)
            return
        self._ahead += data
        if len(self._ahead) >= AHEAD_LIMIT:
            self.pause(True)

    def readConnectionLost(self) -> None:
        self._finished = True
        self.deliver()

    def writeConnectionLost(self) -> None:
        pass

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.connected, self._lost = 0, True
        if not reason.check(ConnectionDone):
            self.other.reset()
        elif not self._closed:
            self.other.close()
        self._splice.end_lost()

    @property
    def lost(self) -> bool:
        """Whether it was connected, and is not any more."""
        return self._lost

    def deliver(self) -> None:
        """Pass on what was read ahead, and the end of the bytes."""
        other = self.other
        if not other.connected:
            return
        if self._ahead:
            ahead, self._ahead = bytes(self._ahead), bytearray()
            self.pause(False)
            other.transport.write(ahead)  # which may pause it again
        if self._finished and not other.closed:
            if other.finished:
                self.close()
                other.close()
            else:
                other.transport.loseWriteConnection()

    @property
    def finished(self) -> bool:
        """Whether its last byte was read."""
        return self._finished

    @property
    def closed(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._closed

    def pause(self, paused: bool) -> None:
        """Pause or resume reading."""
        if not self.connected or self._finished:
            return
        if paused:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    def close(self) -> None:
        """Close once everything was written."""
        if self.connected and not self._closed:
            self._closed = True
            self.transport.unregisterProducer()
            self.transport.loseConnection()

    def reset(self) -> None:
        """Close at once, in a way that the peer takes for a failure; one that is not connected yet will be."""
        registered, self._closed = not self._closed, True
        if self.connected:
            if registered:
                self.transport.unregisterProducer()
            self.transport.abortConnection()


class Relay(Factory):
    """
    Accepts the connections of one listener, and passes them on to its destination.

    :param judge: asked for each connection, before the host is resolved.
    :param tell: called with a sentence about each connection that is not made.
    """

    noisy = False
    log = Logger()

    def __init__(
        self,
        destination: Destination,
        judge: NetworkJudge,
        dialer: Dialer,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._destination, self._judge, self._dialer, self._tell = destination, judge, dialer, tell
        self._open: dict[Splice, Deferred[None] | None] = {}
        self._releases: dict[Splice, Callable[[], None]] = {}

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """:returns: a new client's protocol."""
        splice = Splice(lambda: self._start(splice), lambda: self._end(splice))
        self._open[splice] = None
        return splice.near

    def close(self) -> None:
        """Reset all connections, and withdraw the questions that they wait for."""
        for splice in list(self._open):
            splice.reset()
            self._end(splice)

    def _start(self, splice: Splice) -> None:
        opening = Deferred.fromCoroutine(self._reach(splice))
        self._open[splice] = opening
        opening.addErrback(self._failed, splice)

    async def _reach(self, splice: Splice) -> None:
        host, port = self._destination.host, self._destination.port
        refusal = await self._judge.connect(host, port)
        if refusal is not None:
            self._tell(f"IronCurtain: {refusal.reason}")
            splice.reset()
        else:
            self._releases[splice] = self._judge.hold(host, port, splice.reset)
            await self._dialer.connect(host, port, splice.far, private=self._destination.private)

    def _failed(self, failure: Failure, splice: Splice) -> None:
        if failure.check(CancelledError) is None:
            why = failure.getErrorMessage() or type(failure.value).__name__
            self._tell(f"IronCurtain: the connection to {self._destination} cannot be made: {why}")
        splice.reset()

    def _end(self, splice: Splice) -> None:
        self._releases.pop(splice, lambda: None)()
        opening: Any = self._open.pop(splice, None)
        if opening is not None:
            opening.cancel()
