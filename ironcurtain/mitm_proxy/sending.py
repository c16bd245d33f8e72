"""Send without waiting for the reactor's next turn."""

from __future__ import annotations

from typing import Any

from twisted.internet.interfaces import IPushProducer
from twisted.internet.tcp import Connection

from ironcurtain.mitm_proxy.flow import FlowSignal

QUEUE_LIMIT = 64 * 1024
"""From how many bytes on that wait to be sent the producer is paused (what Twisted's own transports allow)."""


def prompt(transport: Any) -> Any:
    """:returns: the transport, sending at once if it is a socket's: those of tests are left as they are."""
    return PromptTransport(transport) if isinstance(transport, Connection) else transport


class PromptTransport:
    """
    The only writer of a socket's transport.

    Twisted sends what is written when the reactor next finds the socket writable, which costs each message two changes
    of what the reactor watches and one of its turns. So bytes are sent at once if none wait before them, and only what
    does not go out is written in Twisted's way.
    """

    def __init__(self, transport: Connection) -> None:
        self._transport, self._socket = transport, transport.getHandle()
        self._producer: IPushProducer | None = None
        self._drained = FlowSignal(self._sent_all)  # pausing and resuming this object is about what is read
        self._waiting = 0
        self._registering = self._paused = self._dropping = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)  # as Twisted's own wrappers of transports do

    def write(self, data: bytes) -> None:
        """Send bytes, after all that were written before."""
        if self._dropping or not self._transport.connected:
            return
        if self._waiting:
            self._wait(data)
            return
        try:
            sent = self._socket.send(data)
        except OSError:
            sent = 0  # an error shows again, where Twisted handles it
        if sent != len(data):
            self._wait(data[sent:])

    def abortConnection(self) -> None:
        """Close at once."""
        self._dropping = True
        self._transport.abortConnection()

    def drop_writes(self) -> None:
        """The connection is about to be aborted: nothing more is said."""
        self._dropping = True

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """:param producer: paused while much waits to be sent; a streaming one."""
        self._producer = producer
        self._check_queue()

    def unregisterProducer(self) -> None:
        """Nobody is to be paused any more."""
        self._producer, self._paused = None, False

    def _sent_all(self, _: bool) -> None:
        if self._registering:  # it asks for the first time right away
            return
        self._waiting = 0
        self._transport.unregisterProducer()
        if self._paused and self._producer is not None:
            self._paused = False
            self._producer.resumeProducing()

    def _wait(self, rest: bytes) -> None:
        self._transport.write(rest)
        if not self._waiting:
            self._registering = True
            self._transport.registerProducer(self._drained, False)
            self._registering = False
        self._waiting += len(rest)
        self._check_queue()

    def _check_queue(self) -> None:
        if self._producer is not None and not self._paused and self._waiting > QUEUE_LIMIT:
            self._paused = True
            self._producer.pauseProducing()
