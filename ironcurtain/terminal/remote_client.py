"""The viewer's side of a terminal of another process of this machine, over a UNIX socket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import IronCurtainError, ProtocolViolation, Unavailable
from ironcurtain.terminal.keyboard import Keyboard
from ironcurtain.terminal.keys import Keys
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import Channel, Ended
from ironcurtain.terminal.remote_server import StreamTransport
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
    read_welcome,
)


class Refused(IronCurtainError):
    """
    The owner of the terminal said no.

    :param code: the stable word of its error.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@implementer(IPushProducer)
class AttachClient(Protocol):
    """
    A terminal that a person of this process sits at, joined with one of another process.

    :ivar welcomed: fires when frames may follow; fails with :class:`Refused` or
        :class:`~ironcurtain.errors.Unavailable`.
    :ivar over: fires when no more will come; the local terminal is not restored then.
    """

    transport: StreamTransport

    def __init__(self, hello: Hello, terminal: Channel) -> None:
        self._hello, self._terminal = hello, terminal
        self._line, self._frames = LineReader(), FrameReader()
        self.welcomed: Deferred[None] = Deferred(lambda _: self.transport.abortConnection())
        self.over: Deferred[Ended] = Deferred()

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
        """What the person typed."""
        self.transport.write(data_frames(data))

    def resized(self, columns: int, rows: int) -> None:
        """The local terminal has another size."""
        self.transport.write(frame(Resize(columns, rows)))

    def drained(self) -> None:
        """The local terminal is not blocked any more."""
        self.transport.resumeProducing()

    def leave(self, reason: str) -> None:
        """Look no longer; the program goes on."""
        self._lost(reason)
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def pauseProducing(self) -> None:
        """For the transport: the owner does not read."""
        self._terminal.hold(True)

    def resumeProducing(self) -> None:
        """For the transport: it has read all."""
        self._terminal.hold(False)

    def stopProducing(self) -> None:
        """For the transport: the connection is lost."""

    def _answered(self, welcome: Welcome) -> None:
        if welcome.code:
            self.welcomed.errback(Refused(welcome.code, welcome.message))
            self.transport.loseConnection()
        else:
            self.welcomed.callback(None)
            self._received(self._line.rest)

    def _received(self, data: bytes) -> None:
        for what in self._frames.feed(data):
            if self.over.called:
                return
            if isinstance(what, bytes):
                self._terminal.write(what)
            elif isinstance(what, Ended):
                self.over.callback(what)
        if self._terminal.blocked:
            self.transport.pauseProducing()

    def _lost(self, reason: str) -> None:
        if not self.welcomed.called:
            self.welcomed.errback(Unavailable(reason))
        if not self.over.called:
            self.over.callback(Ended(None, reason))


async def connect(reactor: Any, path: str, client: AttachClient) -> None:
    """
    Connect a client with the owner of a terminal; its output may have begun to come when this returns.

    :param path: of the owner's socket.
    :raises Unavailable: nobody answers there.
    :raises Refused: the owner said no.
    """
    try:
        await connectProtocol(UNIXClientEndpoint(reactor, path, timeout=PATIENCE_SECONDS), client)
        await client.welcomed.addTimeout(PATIENCE_SECONDS, reactor)
    except (ConnectError, TimeoutError) as e:
        raise Unavailable(f"the session's process does not answer: {str(e) or type(e).__name__}") from None


async def attach(
    reactor: Any,
    path: str,
    hello: Hello,
    terminal: LocalTerminal,
    keys: Keys,
    on_key: Callable[[str, AttachClient], None],
) -> Ended:
    """
    Join the local terminal with one of another process, until one of them ends; then it is as it was before.

    Cancelling this leaves the program running.

    :param path: of the owner's socket.
    :param on_key: gets the names of reserved keys; it may call :meth:`AttachClient.leave`.
    :returns: how the program ended, or with no status that the connection was lost or left.
    :raises Unavailable: nobody answers there.
    :raises Refused: the owner said no.
    """
    client = AttachClient(hello, terminal)
    user = _User(client, Keyboard(keys, reactor, client.typed, lambda name: on_key(name, client)))
    await connect(reactor, path, client)
    try:
        # No turn of the reactor lies between the answer and this, so that the first output finds the terminal ready.
        terminal.begin(user)
        return await client.over
    finally:
        user.stop()
        terminal.close(None)
        if terminal.connected:
            await terminal.closed


class _User:
    """Who uses the local terminal: the other process."""

    def __init__(self, client: AttachClient, keyboard: Keyboard) -> None:
        self._client, self._keyboard = client, keyboard

    def received(self, read: bytes) -> None:
        self._keyboard.received(read)

    def resized(self, columns: int, rows: int) -> None:
        self._client.resized(columns, rows)

    def drained(self) -> None:
        self._client.drained()

    def lost(self) -> None:
        self._client.leave("the terminal is gone")

    def stop(self) -> None:
        self._keyboard.stop()
        self._client.leave("left")
