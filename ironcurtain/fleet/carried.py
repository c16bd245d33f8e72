"""Streams to other hosts as transports of Twisted, over a carrier of messages."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IDelayedCall,
    IProtocol,
    IPushProducer,
    IReactorTime,
    ITransport,
)
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import ProtocolViolation
from ironcurtain.fleet.frames import Frame, Kind, Receiving, Sending, decode
from ironcurtain.fleet.trust import NAME
from ironcurtain.services.asyncio_bridge import soon

SUBJECTS = "ironcurtain.stream"
"""Where messages of streams are published: ``ironcurtain.stream.HOST.STREAM``, with the host that they are for."""

STREAMS, OF_A_HOST = 1024, 256
"""Maximum number of streams that others have opened here, and that one of them has."""

UNPROVED, PROOF_SECONDS = 64, 10.0
"""
Maximum number of those whose other side has not proved yet who it is, and the time limit in seconds for that. One more
takes the place of the oldest, so that whoever opens many keeps others out only while it goes on.
"""

Accept = Callable[[str, Callable[[], None]], IProtocol | None]
"""
Returns the protocol for a stream that a host opens, or ``None`` to refuse it. It gets the name that the other side
claims, and what to call once that is proved.
"""

Soon = Callable[[Callable[[], None]], None]
"""Calls a function in the next turn of the reactor."""


class Carrier(Protocol):
    """Publishes messages, in order, at most once each."""

    def publish(self, subject: str, data: bytes) -> None:
        """Publish a message; it is dropped while nothing is reached."""


@implementer(IAddress)
class HostAddress(msgspec.Struct, frozen=True):
    """:param name: of a host, which has no other address here."""

    name: str


@implementer(ITransport, IConsumer, IPushProducer)
class CarriedTransport:
    """
    One stream, as the transport of a protocol.

    :param send: publishes a frame for the other host.
    :param left: called when the stream is over.
    :ivar host: the name of the other host.
    :param soon: calls a function once the protocol has returned, as transports of sockets do.
    """

    disconnecting = False

    def __init__(self, host: str, send: Callable[[Frame], None], left: Callable[[], None], soon: Soon) -> None:
        self.host, self._send, self._left, self._soon = host, send, left, soon
        self._sending, self._receiving = Sending(), Receiving()
        self._protocol: Any = None
        self._producer: Any = None
        self._held: bytearray | None = None
        """What arrived while reading is paused; ``None``: it is not."""
        self._ended = self._over = False

    def connect(self, protocol: IProtocol) -> None:
        """Begin, as the transport of this protocol."""
        self._protocol = protocol
        protocol.makeConnection(self)

    def write(self, data: bytes) -> None:
        """Send data, or queue it until the other host has taken what was sent before."""
        self._publish(self._sending.write(data))
        if self._sending.waiting and self._producer is not None:
            self._producer.pauseProducing()

    def writeSequence(self, iovec: Any) -> None:
        """Send several pieces."""
        self.write(b"".join(iovec))

    def loseConnection(self) -> None:
        """End the stream once all data was sent."""
        self.disconnecting = True
        self._publish(self._sending.end())
        self._perhaps_done()

    def abortConnection(self) -> None:
        """End the stream at once."""
        if not self._over:
            self._send(Frame(Kind.RESET))
            self._finish(ConnectionAborted())

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Only push producers."""
        self._producer = producer
        if self._over:
            producer.stopProducing()

    def unregisterProducer(self) -> None:
        """Forget the producer."""
        self._producer = None

    def pauseProducing(self) -> None:
        """Deliver nothing for now; the other host can go on up to the window."""
        if self._held is None:
            self._held = bytearray()

    def resumeProducing(self) -> None:
        """Deliver what has arrived, and go on."""
        held, self._held = self._held, None
        if held:
            self._deliver(bytes(held))
        self._perhaps_done()

    def stopProducing(self) -> None:
        """As :meth:`loseConnection`."""
        self.loseConnection()

    def getPeer(self) -> HostAddress:
        """:returns: the other host."""
        return HostAddress(self.host)

    def getHost(self) -> HostAddress:
        """:returns: the other host: a stream has no address of its own."""
        return HostAddress(self.host)

    def setTcpNoDelay(self, enabled: bool) -> None:
        """For servers of HTTP, which ask for it: nothing is delayed."""

    def heard(self, frame: Frame) -> None:
        """The other host has sent a frame."""
        try:
            match frame.kind:
                case Kind.DATA:
                    self._received(self._receiving.data(frame))
                case Kind.TAKEN:
                    self._taken(frame.number)
                case Kind.END:
                    self._receiving.end(frame)
                    self._ended = True
                    self._perhaps_done()
                case Kind.RESET:
                    self._finish(ConnectionLost("the other host ended it"))
                case Kind.OPEN:
                    raise ProtocolViolation("fleet", "a stream that is open was opened")
        except ProtocolViolation as e:
            self._send(Frame(Kind.RESET))
            self._finish(ConnectionLost(str(e)))

    def lost(self, reason: str) -> None:
        """The other host cannot be reached, or is not believed any more; it is told, if it still hears."""
        if not self._over:
            self._send(Frame(Kind.RESET))
        self._finish(ConnectionLost(reason))

    def _received(self, data: bytes) -> None:
        if self._held is not None:
            self._held += data
        else:
            self._deliver(data)

    def _deliver(self, data: bytes) -> None:
        if not self._over:
            self._protocol.dataReceived(data)
            self._publish(self._receiving.take(len(data)))

    def _taken(self, total: int) -> None:
        blocked = self._sending.waiting
        self._publish(self._sending.taken(total))
        if blocked and not self._sending.waiting and self._producer is not None:
            self._producer.resumeProducing()
        self._perhaps_done()

    def _perhaps_done(self) -> None:
        if self._ended and not self._held:
            self._publish(self._sending.end())
            if self._sending.over:
                self._finish(ConnectionDone())

    def _publish(self, frames: list[Frame]) -> None:
        if not self._over:
            for frame in frames:
                self._send(frame)

    def _finish(self, reason: Exception) -> None:
        if self._over:
            return
        self._over, producer, self._producer = True, self._producer, None
        self._left()
        if producer is not None:
            producer.stopProducing()
        self._soon(lambda: self._protocol.connectionLost(Failure(reason)))


class _Stream(msgspec.Struct, frozen=True):
    """
    :param theirs: whether the other host has opened it.
    :param since: seconds on the clock.
    """

    transport: CarriedTransport
    theirs: bool
    since: float


class Streams:
    """
    All streams between this host and others.

    :param name: of this host.
    :param accept: see :data:`Accept`.
    """

    log = Logger()

    def __init__(self, carrier: Carrier, name: str, accept: Accept, clock: IReactorTime, soon: Soon = soon) -> None:
        self._carrier, self._name, self._accept, self._clock, self._soon = carrier, name, accept, clock, soon
        self._open: dict[str, _Stream] = {}
        self._unproved: dict[str, IDelayedCall] = {}

    @property
    def subject(self) -> str:
        """What the carrier has to subscribe to."""
        return f"{SUBJECTS}.{self._name}.*"

    @property
    def hosts(self) -> set[str]:
        """The other hosts of those that are open."""
        return {stream.transport.host for stream in self._open.values()}

    def open(self, host: str, protocol: IProtocol) -> None:
        """:param protocol: is connected at once; whether anybody hears it shows when they answer."""
        stream = secrets.token_hex(16)
        transport = self._make(host, stream, theirs=False)
        self._send(host, stream, Frame(Kind.OPEN, data=self._name.encode("ascii")))
        transport.connect(protocol)

    def heard(self, subject: str, message: bytes) -> None:
        """A message has arrived."""
        stream = subject.rpartition(".")[2]
        try:
            frame = decode(message)
            if frame.kind is Kind.OPEN and stream not in self._open:
                self._opened(frame.data.decode("ascii"), stream)
            elif stream in self._open:
                self._open[stream].transport.heard(frame)
        except (ProtocolViolation, UnicodeDecodeError) as e:
            self.log.debug("left out a message of the fleet: {error}", error=e)  # anybody can send any number of them

    def lose(
        self, host: str | None = None, reason: str = "the fleet's server cannot be reached", older: float = 0
    ) -> None:
        """
        :param host: end its streams; ``None``: all.
        :param older: only those that have been open for so many seconds.
        """
        until = self._clock.seconds() - older
        for stream in list(self._open.values()):
            if host in (None, stream.transport.host) and stream.since <= until:
                stream.transport.lost(reason)

    def _opened(self, host: str, stream: str) -> None:
        if NAME.fullmatch(host) is None:
            raise ProtocolViolation("fleet", "a stream of a host without a name")
        theirs = [each.transport.host for each in self._open.values() if each.theirs]
        full = len(theirs) >= STREAMS or theirs.count(host) >= OF_A_HOST
        protocol = None if full else self._accept(host, lambda: self._proved(stream))
        if protocol is None:
            self._send(host, stream, Frame(Kind.RESET))
            return
        if len(self._unproved) >= UNPROVED:
            self._open[next(iter(self._unproved))].transport.abortConnection()
        transport = self._make(host, stream, theirs=True)
        self._unproved[stream] = self._clock.callLater(PROOF_SECONDS, transport.abortConnection)
        transport.connect(protocol)

    def _proved(self, stream: str) -> None:
        timer = self._unproved.pop(stream, None)
        if timer is not None and timer.active():
            timer.cancel()

    def _make(self, host: str, stream: str, *, theirs: bool) -> CarriedTransport:
        def left() -> None:
            self._open.pop(stream, None)
            self._proved(stream)

        def send(frame: Frame) -> None:
            self._send(host, stream, frame)

        made = CarriedTransport(host, send, left, self._soon)
        self._open[stream] = _Stream(made, theirs, self._clock.seconds())
        return made

    def _send(self, host: str, stream: str, frame: Frame) -> None:
        self._carrier.publish(f"{SUBJECTS}.{host}.{stream}", frame.encode())
