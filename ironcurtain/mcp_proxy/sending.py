"""Send messages by a transport, and know how much its peer has not read."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from zope.interface import implementer


class MessageTransport(ITransport, IConsumer, IPushProducer):
    """The transport that a connection needs."""

    def abortConnection() -> None:
        """End the connection now."""


@implementer(IPushProducer)
class MessageSender:
    """
    The only writer of a transport.

    :param blocked: called when data has to be queued.
    :param drained: called when the queue is empty.
    """

    def __init__(self, transport: MessageTransport, blocked: Callable[[], None], drained: Callable[[], None]) -> None:
        self._transport, self._blocked, self._drained = transport, blocked, drained
        self.waiting = 0
        """Upper bound of the number of queued bytes; 0 means that the peer reads."""
        self._write = transport.write
        transport.registerProducer(self, True)

    def send(self, data: bytes) -> None:
        """:param data: one or more complete messages. Nothing may be sent while the transport is closing."""
        self._write(data)
        if self.waiting:  # now or before
            self.waiting += len(data)

    def pauseProducing(self) -> None:
        """For the transport: data is queued."""
        self.waiting = 1
        self._blocked()

    def resumeProducing(self) -> None:
        """For the transport: all data has been written."""
        self.waiting = 0
        self._drained()

    def stopProducing(self) -> None:
        """For the transport: it is closed."""

    def finish(self) -> None:
        """The transport is about to be closed."""
        self._transport.unregisterProducer()
