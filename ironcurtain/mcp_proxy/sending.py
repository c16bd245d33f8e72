"""Send without waiting for the reactor's next turn, and know how much waits because the other side does not read."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IConsumer, IPullProducer, IPushProducer, ITCPTransport
from zope.interface import implementer


class StreamTransport(ITCPTransport, IConsumer, IPushProducer):
    """What Twisted's stream transports are."""


@implementer(IPullProducer, IPushProducer)
class Sender:
    """
    The only writer of a transport.

    Twisted sends what is written when the reactor next finds the descriptor writable, which costs each message two
    changes of what the reactor watches and one of its turns. So a message is sent at once if none waits before it, and
    only what does not go out is written in Twisted's way.

    :param blocked: called when something has to wait.
    :param drained: called when nothing waits any more.
    """

    def __init__(self, transport: StreamTransport, blocked: Callable[[], None], drained: Callable[[], None]) -> None:
        self._transport, self._blocked, self._drained = transport, blocked, drained
        # Sockets have it (twisted.internet.abstract.FileDescriptor); standard input and output do not.
        self._send: Callable[[bytes], int | BaseException] | None = getattr(transport, "writeSomeData", None)
        self._registering = False
        self.waiting = 0
        """How many bytes wait, at most: 0 says that the other side reads."""
        if self._send is None:
            transport.registerProducer(self, True)

    def send(self, data: bytes) -> None:
        """:param data: one or more whole messages; nothing may be sent once the transport is being closed."""
        if self.waiting:
            self.waiting += len(data)
            self._transport.write(data)
        elif self._send is None:
            self._transport.write(data)
        elif (sent := self._send(data)) != len(data):
            self._wait(data[sent:] if isinstance(sent, int) else data)  # an error shows again, where Twisted handles it

    def _wait(self, rest: bytes) -> None:
        self.waiting = len(rest)
        self._transport.write(rest)
        self._registering = True
        self._transport.registerProducer(self, False)
        self._registering = False
        self._blocked()

    def pauseProducing(self) -> None:
        """For the transport, where messages cannot be sent at once: much waits."""
        self.waiting = max(self.waiting, 1)
        self._blocked()

    def resumeProducing(self) -> None:
        """For the transport: all has gone out."""
        if self._registering:  # it asks for the first time right away
            return
        if self._send is not None:
            self._transport.unregisterProducer()
        self.waiting = 0
        self._drained()

    def stopProducing(self) -> None:
        """For the transport: it is closed."""

    def finish(self) -> None:
        """The transport is about to be closed."""
        self._transport.unregisterProducer()
