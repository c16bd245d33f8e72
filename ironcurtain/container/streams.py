"""A connection that the Engine hands over to us: bytes both ways, with back-pressure both ways."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IPushProducer, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.wire import Head, HeadReader, error_message
from ironcurtain.errors import ProtocolViolation

Receiver = Callable[[bytes], Deferred[None] | None]
"""Gets bytes as they come. If it returns a Deferred, nothing more is read until that fires."""


class StreamTransport(ITCPTransport, IConsumer, IPushProducer):
    """What Twisted's stream transports are."""


class Stream(Protocol):
    """
    One connection that is handed over.

    :param request: sent first; the Engine's answer to it is its last HTTP on this connection.
    :param address: of the Engine, for messages.
    :ivar opened: fires when the connection is ours; fails with :class:`EngineError` if the Engine refuses, and with
        :class:`EngineUnavailable` if it goes away. Cancelling it closes the connection.
    :ivar ended: fires when the connection is over, whoever ended it, after the last byte was taken.
    """

    log = Logger()
    transport: StreamTransport

    def __init__(self, request: bytes, receive: Receiver, address: str) -> None:
        self._request, self._receive, self._address = request, receive, address
        self._reader = HeadReader()
        self._refusal: Head | None = None
        self._body = bytearray()
        self._untaken = 0
        self.opened: Deferred[None] = Deferred(lambda _: self.abort())
        self.ended: Deferred[None] = Deferred()

    def write(self, data: bytes) -> None:
        """Send bytes; only once it is open, since the Engine loses what comes before."""
        self.transport.write(data)

    def end_input(self) -> None:
        """Send no more; what was written still arrives, and the other direction goes on."""
        self.transport.loseWriteConnection()

    def register_producer(self, producer: IPushProducer) -> None:
        """Let ``producer`` be paused while much that was written has not been sent."""
        self.transport.registerProducer(producer, True)

    def unregister_producer(self) -> None:
        """Undo :meth:`register_producer`."""
        self.transport.unregisterProducer()

    def abort(self) -> None:
        """Close the connection at once. What runs at its other end is not told."""
        if self.transport is not None:
            self.transport.abortConnection()

    def connectionMade(self) -> None:
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        try:
            if self._refusal is not None:
                self._refused(data)
            elif self.opened.called:
                self._take(data)
            elif (head := self._reader.feed(data)) is not None:
                self._answered(head)
        except ProtocolViolation as e:
            self.log.warn("dropped a connection to {address}: {error}", address=self._address, error=e)
            self._fail(EngineUnavailable(self._address, e.detail))
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._fail(EngineUnavailable(self._address, "it closed the connection"))
        self.ended.callback(None)

    def _answered(self, head: Head) -> None:
        if head.status in (101, 200):
            self.opened.callback(None)
            if head.rest:
                self._take(head.rest)
        else:
            self._refusal = head
            self._refused(head.rest)

    def _refused(self, data: bytes) -> None:
        assert self._refusal is not None
        self._body += data
        if len(self._body) >= self._refusal.length:
            self._fail(EngineError(self._refusal.status, error_message(bytes(self._body))))
            self.abort()

    def _fail(self, error: Exception) -> None:
        if not self.opened.called:
            self.opened.errback(error)

    def _take(self, data: bytes) -> None:
        taken = self._receive(data)
        if taken is not None and not taken.called:
            self._untaken += 1
            self.transport.pauseProducing()
            taken.addBoth(self._resume)

    def _resume(self, _: object) -> None:
        self._untaken -= 1
        if not self._untaken:
            self.transport.resumeProducing()
