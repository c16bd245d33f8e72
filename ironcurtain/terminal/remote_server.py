"""The owner's side of a terminal that is looked at from another process of this machine, over a UNIX socket."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IAddress, IConsumer, IDelayedCall, IPushProducer, IReactorTime, ITCPTransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import IronCurtainError, ProtocolViolation
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Ended
from ironcurtain.terminal.wire import (
    PATIENCE_SECONDS,
    FrameReader,
    Hello,
    LineReader,
    Resize,
    Welcome,
    data_frames,
    frame,
    line,
    read_hello,
)

Check = Callable[[Hello], Hub]
"""Gives the terminal that a viewer may see, once its token is found right and used up; raises what it refuses with."""


class StreamTransport(ITCPTransport, IConsumer, IPushProducer):
    """What Twisted's stream transports are."""


@implementer(IPushProducer)
class AttachServer(Protocol):
    """One viewer in another process, as its owner sees it."""

    log = Logger()
    transport: StreamTransport

    def __init__(self, check: Check, clock: IReactorTime) -> None:
        self._check, self._clock = check, clock
        self._line, self._frames = LineReader(), FrameReader()
        self._attachment: Attachment | None = None
        self._timer: IDelayedCall | None = None
        self._blocked = self._over = False

    def connectionMade(self) -> None:
        self._timer = self._clock.callLater(PATIENCE_SECONDS, self.transport.abortConnection)
        self.transport.registerProducer(self, True)

    def dataReceived(self, data: bytes) -> None:
        if self._over:
            return
        try:
            if self._attachment is not None:
                self._received(data)
            elif (found := self._line.feed(data)) is not None:
                self._asked(read_hello(found))
        except ProtocolViolation as e:
            self.log.warn("dropped a viewer: {error}", error=e)
            self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._be_patient()
        attachment, self._attachment = self._attachment, None
        if attachment is not None:
            attachment.detach()

    def draw(self, data: bytes) -> bool:
        """For the hub."""
        self.transport.write(data_frames(data))
        return not self._blocked

    def hold(self, full: bool) -> None:
        """For the hub."""
        (self.transport.pauseProducing if full else self.transport.resumeProducing)()

    def ended(self, reason: str, status: int | None) -> None:
        """For the hub."""
        self._attachment = None
        self._last(frame(Ended(status, reason)))

    def pauseProducing(self) -> None:
        """For the transport: the viewer does not read."""
        self._blocked = True

    def resumeProducing(self) -> None:
        """For the transport: it has read all."""
        self._blocked = False
        if self._attachment is not None:
            self._attachment.drained()

    def stopProducing(self) -> None:
        """For the transport: the connection is lost."""

    def _asked(self, hello: Hello) -> None:
        self._be_patient()
        try:
            hub = self._check(hello)
            if hub.over is None:
                self.transport.write(line(Welcome()))
            self._attachment = hub.attach(self, hello.mode, hello.columns, hello.rows)
        except IronCurtainError as e:
            self._last(line(Welcome(e.code, str(e))))
        else:
            self._received(self._line.rest)

    def _received(self, data: bytes) -> None:
        for what in self._frames.feed(data):
            if self._attachment is None:
                return
            if isinstance(what, bytes):
                self._attachment.typed(what)
            elif isinstance(what, Resize):
                self._attachment.resized(what.columns, what.rows)
            else:
                raise ProtocolViolation("attach", "a viewer cannot end the program")

    def _last(self, data: bytes) -> None:
        self._over = True
        self.transport.unregisterProducer()
        self.transport.resumeProducing()
        # The viewer closes: if it wrote to a connection that is closed here, it would lose what it has not read yet.
        self.transport.write(data)
        self._timer = self._clock.callLater(PATIENCE_SECONDS, self.transport.abortConnection)

    def _be_patient(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()


class AttachFactory(Factory):
    """Serves the terminals of this process; the socket's mode and directory say who may connect."""

    noisy = False

    def __init__(self, check: Check, clock: IReactorTime) -> None:
        self._check, self._clock = check, clock

    def buildProtocol(self, addr: IAddress | None) -> AttachServer:
        return AttachServer(self._check, self._clock)
