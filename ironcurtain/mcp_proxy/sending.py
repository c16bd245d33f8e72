"""Send, and know how much waits because the other side does not read."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from zope.interface import implementer


class StreamTransport(ITransport, IConsumer, IPushProducer):
    """What a connection's transport has to be."""

    def abortConnection() -> None:
        """End the connection now."""


@implementer(IPushProducer)
class Sender:
    """
    The only writer of a transport.

    :param blocked: called when something has to wait.
    :param drained: called when nothing waits any more.
    """

    def __init__(self, transport: StreamTransport, blocked: Callable[[], None], drained: Callable[[], None]) -> None:
        self._transport, self._blocked, self._drained = transport, blocked, drained
        self.waiting = 0
        """How many bytes wait, at most: 0 says that the other side reads."""
        self._write = transport.write
        transport.registerProducer(self, True)

    def send(self, data: bytes) -> None:
        """:param data: one or more whole messages; nothing may be sent once the transport is being closed."""
        self._write(data)
        if self.waiting:  # now or before
            self.waiting += len(data)

    def pauseProducing(self) -> None:
        """For the transport: something waits."""
        self.waiting = 1
        self._blocked()

    def resumeProducing(self) -> None:
        """For the transport: all has gone out."""
        self.waiting = 0
        self._drained()

    def stopProducing(self) -> None:
        """For the transport: it is closed."""

    def finish(self) -> None:
        """The transport is about to be closed."""
        self._transport.unregisterProducer()
