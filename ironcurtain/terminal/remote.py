"""Both ends of the UNIX socket over which another process of this machine views a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IAddress, IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import IronCurtainError, ProtocolViolation, Unavailable
from ironcurtain.services.stream import StreamTransport
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ProgramExit, Viewer
from ironcurtain.terminal.sequences import RESTORE
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
    read_welcome,
)

Check = Callable[[Hello], Hub]
"""Checks and uses up a viewer's token, and returns the terminal; raises an error to refuse the viewer."""


@implementer(IPushProducer)
class AttachServer(Protocol):
    """The owner's end of the connection of one viewer."""

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
        self._cancel_timer()
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
        self._last(frame(ProgramExit(status, reason)))

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
        self._cancel_timer()
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
        # Let the viewer close: a viewer that writes to a closed connection loses the data that it has not read.
        self.transport.write(data)
        self._timer = self._clock.callLater(PATIENCE_SECONDS, self.transport.abortConnection)

    def _cancel_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()


class AttachFactory(Factory):
    """Serves the terminals of this process; the socket's mode and directory say who may connect."""

    noisy = False

    def __init__(self, check: Check, clock: IReactorTime) -> None:
        self._check, self._clock = check, clock

    def buildProtocol(self, addr: IAddress | None) -> AttachServer:
        return AttachServer(self._check, self._clock)


class AttachRefused(IronCurtainError):
    """
    The owner of the terminal refused the viewer.

    :param code: the error's code.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@implementer(IPushProducer)
class RemoteAttachment(Protocol):
    """
    A viewer's attachment to a terminal of another process; same interface as
    :class:`~ironcurtain.terminal.attachment.Attachment`.

    :ivar welcomed: fires when the owner has accepted the viewer; fails with :class:`AttachRefused` or
        :class:`~ironcurtain.errors.Unavailable`.
    """

    transport: StreamTransport

    def __init__(self, hello: Hello, viewer: Viewer) -> None:
        self._hello, self._viewer = hello, viewer
        self._line, self._frames = LineReader(), FrameReader()
        self._over = False
        self.welcomed: Deferred[None] = Deferred(lambda _: self.transport.abortConnection())

    def connectionMade(self) -> None:
        self.transport.registerProducer(self, True)
        self.transport.write(line(self._hello))

    def dataReceived(self, data: bytes) -> None:
        try:
            if self.welcomed.called:
                self._received(data)
            elif (found := self._line.feed(data)) is not None:
                self._answered(read_welcome(found))
        except ProtocolViolation as e:
            self._lost(str(e))
            self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._lost("the connection to the session was lost")

    def typed(self, data: bytes) -> None:
        """Send input."""
        self.transport.write(data_frames(data))

    def resized(self, columns: int, rows: int) -> None:
        """Send the new size of the viewer's terminal."""
        self.transport.write(frame(Resize(columns, rows)))

    def drained(self) -> None:
        """Resume: the viewer can take more output."""
        self.transport.resumeProducing()

    def detach(self) -> None:
        """Disconnect. The program continues, and the viewer's terminal is left as it is. Can be called twice."""
        if not self._over:
            self._over = True
            self.transport.unregisterProducer()
            self.transport.loseConnection()

    def pauseProducing(self) -> None:
        """For the transport: the owner does not read."""
        self._viewer.hold(True)

    def resumeProducing(self) -> None:
        """For the transport: it has read all."""
        self._viewer.hold(False)

    def stopProducing(self) -> None:
        """For the transport: the connection is lost."""

    def _answered(self, welcome: Welcome) -> None:
        if welcome.code:
            self._over = True
            self.welcomed.errback(AttachRefused(welcome.code, welcome.message))
            self.transport.loseConnection()
        else:
            self.welcomed.callback(None)
            self._received(self._line.rest)

    def _received(self, data: bytes) -> None:
        for what in self._frames.feed(data):
            if self._over:
                return
            if isinstance(what, ProgramExit):
                self._end(what)
            elif isinstance(what, bytes) and not self._viewer.draw(what):
                self.transport.pauseProducing()

    def _lost(self, reason: str) -> None:
        if not self.welcomed.called:
            self._over = True
            self.welcomed.errback(Unavailable(reason))
        elif not self._over:
            self._viewer.draw(RESTORE)
            self._end(ProgramExit(None, reason))

    def _end(self, ended: ProgramExit) -> None:
        self.detach()  # the owner waits for the close
        self._viewer.ended(ended.reason, ended.status)


async def connect(reactor: Any, path: str, hello: Hello, viewer: Viewer) -> RemoteAttachment:
    """
    View a terminal of another process. Output is delivered only after the caller, having this result, yields to the
    reactor.

    :param path: path of the owner's socket.
    :raises Unavailable: the owner does not answer.
    :raises AttachRefused: the owner refused.
    """
    attachment = RemoteAttachment(hello, viewer)
    try:
        await connectProtocol(UNIXClientEndpoint(reactor, path, timeout=PATIENCE_SECONDS), attachment)
        await attachment.welcomed.addTimeout(PATIENCE_SECONDS, reactor)
    except (ConnectError, TimeoutError) as e:
        raise Unavailable(f"the session's process does not answer: {str(e) or type(e).__name__}") from None
    return attachment
