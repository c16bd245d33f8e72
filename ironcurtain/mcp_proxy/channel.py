"""How messages travel to one run of a server: by the streams of a child of ours, or by HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlsplit

from twisted.internet.interfaces import IConsumer, IPushProducer, IReactorTime, ITransport
from twisted.internet.threads import deferToThread
from zope.interface import implementer

from ironcurtain.errors import Unavailable
from ironcurtain.http.trust import ssl_context
from ironcurtain.jsonrpc.framing import TooLong
from ironcurtain.mcp_proxy.servers_config import HttpServer, is_header_value
from ironcurtain.secrets.redaction import Redactor, Secret

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.http_channel import HttpChannel
import os
import signal
import socket
from contextlib import suppress

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorProcess
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.protocol import Protocol as StreamProtocol
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer
from ironcurtain.mcp_proxy.launch import Launch
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.services.stream import adopt

UNSENT_LIMIT = 16 * 1024 * 1024
"""Most bytes that may wait for a server that does not read: 16 MiB, twice an agent's largest message."""


class ChannelOwner(Protocol):
    """Who hears from a channel."""

    def line_received(self, line: bytes | TooLong) -> None:
        """The server sent a message, or one over the limit."""

    def error_line(self, line: str) -> None:
        """There is something to tell for the log: a line of a child's error output, or what HTTP answered."""

    def gone(self, why: str) -> None:
        """The server ended, or cannot be reached: no more will come from it. Called once."""


class ServerChannel(Protocol):
    """The way to one run of a server. Its owner hears of all that happens until :meth:`stop` is called."""

    pid: int
    """The server's process id, 0 if it has none here."""

    @property
    def choked(self) -> bool:
        """Whether so much waits to be read by the server that no more can be sent."""

    async def connect(self) -> None:
        """Begin to hear from it; only then may it be written to."""

    def write(self, line: bytes) -> None:
        """Send a message; nothing happens if the server is gone."""

    def pause(self) -> None:
        """Read no more for now."""

    def resume(self) -> None:
        """Read again."""

    async def stop(self) -> None:
        """End this run of the server; nothing of it is left."""


MakeChannel = Callable[[ChannelOwner], ServerChannel]
"""Makes the way to a new run of a server."""


class MessageTransport(ITransport, IConsumer, IPushProducer):
    """What a connection's transport has to be."""

    def abortConnection() -> None:
        """End the connection now."""


@implementer(IPushProducer)
class MessageSender:
    """
    The only writer of a transport.

    :param blocked: called when something has to wait.
    :param drained: called when nothing waits any more.
    """

    def __init__(self, transport: MessageTransport, blocked: Callable[[], None], drained: Callable[[], None]) -> None:
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


async def way_to(
    server: HttpServer, secrets: Mapping[str, Secret], redactor: Redactor, clock: IReactorTime
) -> MakeChannel:
    """
    :param secrets: header name to what its ``headers_command`` gave.
    :param redactor: learns what the headers and the address hold that may be a key.
    :raises Unavailable: a header cannot be sent.
    :raises ConfigurationError: ``ca_file`` cannot be used.
    """
    headers = {**server.headers, **secrets}
    for name, secret in headers.items():
        if not is_header_value(secret.reveal()):
            raise Unavailable(f"MCP server {server.name}: what its command for the header {name} prints cannot be sent")
        for part in (secret.reveal(), *secret.reveal().split()):  # also without a scheme such as Bearer
            redactor.add(Secret(part))
    for name, value in parse_qsl(urlsplit(server.url.reveal()).query, keep_blank_values=True):
        redactor.add(Secret(value or name))
    context = ssl_context(server.ca_file)
    channel = await deferToThread(_channel_class)
    return partial(channel, server.url, headers, context, clock)


def _channel_class() -> type[HttpChannel]:
    # In a thread: importing the SDK takes a second, in which others would wait for the reactor.
    from ironcurtain.mcp_proxy.http_channel import HttpChannel

    return HttpChannel


ERROR_LINE_LIMIT = 2000
"""Most characters of one line of a server's error output that are kept."""

ERROR_BYTES_A_SECOND = 256 * 1024
"""How much error output is read each second; a server that writes more has to wait."""

POLITE_SECONDS = 1.0
"""How long a server may take to leave once its input has ended, before it is sent SIGTERM."""

TERM_SECONDS = 2.0
"""How long it may take after SIGTERM, before SIGKILL (all its processes are gone within 8 s)."""


class ChildReactor(IReactorProcess, IReactorTime):
    """The parts of a reactor that a child needs."""


class Child:
    """
    :param owner: told of all that happens, until :meth:`stop` is called.
    """

    def __init__(self, reactor: ChildReactor, launch: Launch, owner: ChannelOwner) -> None:
        self._reactor, self._owner = reactor, owner
        self._gone = False
        self._exited: Deferred[None] = Deferred()
        self._stream, self._errors = _Stream(self), _Errors(self, reactor)
        self._ours, theirs = socket.socketpair()
        with theirs, opened(launch.inputs) as inputs:
            self._process = reactor.spawnProcess(
                self._errors,
                launch.argv[0],
                list(launch.argv),
                dict(launch.environment),
                launch.cwd,
                childFDs={0: theirs.fileno(), 1: theirs.fileno(), 2: "r", **inputs},
            )
        self.pid = int(self._process.pid or 0)

    async def connect(self) -> None:
        """See :class:`~ironcurtain.mcp_proxy.channel.ServerChannel`, as for all that follows."""
        await adopt(self._ours, self._stream)

    @property
    def choked(self) -> bool:
        """Whether so much waits to be read by the server that no more can be sent."""
        return self._stream.sender.waiting > UNSENT_LIMIT

    def write(self, line: bytes) -> None:
        """Send a line."""
        if not self._gone:
            self._stream.sender.send(line)

    def pause(self) -> None:
        """Read no more for now."""
        self._stream.pause()

    def resume(self) -> None:
        """Read again."""
        self._stream.resume()

    async def stop(self) -> None:
        """End its input, then it, then whatever it started that is still in its session."""
        self._gone = True
        self._stream.close()
        self._ours.close()  # if it was never connected
        if not await self._left_within(POLITE_SECONDS):
            self._signal(signal.SIGTERM)
            await self._left_within(TERM_SECONDS)
        self._signal(signal.SIGKILL)
        if not self._exited.called:
            await self._exited
        self._errors.close()

    def received(self, line: bytes | TooLong) -> None:
        """For the stream."""
        if not self._gone:
            self._owner.line_received(line)

    def error_line(self, line: str) -> None:
        """For the error output."""
        self._owner.error_line(line)

    def stream_ended(self) -> None:
        """For the stream."""
        self._went("closed its output")

    def process_ended(self, reason: Failure) -> None:
        """For the process."""
        self._exited.callback(None)
        self._went(_words(reason))

    def _went(self, why: str) -> None:
        if not self._gone:
            self._gone = True
            self._owner.gone(why)

    async def _left_within(self, seconds: float) -> bool:
        if self._exited.called:
            return True
        timer: Deferred[None] = deferLater(self._reactor, seconds)
        self._exited.addBoth(lambda _: timer.cancel())
        timer.addErrback(lambda _: None)
        await timer
        return self._exited.called

    def _signal(self, number: int) -> None:
        # Its process group is there only once it has made its session: until then, and afterwards, it may be alone.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        with suppress(ProcessExitedAlready):
            self._process.signalProcess(signal.Signals(number).name.removeprefix("SIG"))


class _Stream(StreamProtocol):
    """Our end of the socket pair: lines in, lines out, and how much waits to go out."""

    transport: MessageTransport
    sender: MessageSender

    def __init__(self, child: Child) -> None:
        self._child, self._framer = child, Framer(OUTBOUND_LIMIT)

    def connectionMade(self) -> None:
        self.sender = MessageSender(self.transport, lambda: None, lambda: None)

    def dataReceived(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            self._child.received(line)

    def connectionLost(self, reason: Failure | None = None) -> None:
        self._child.stream_ended()

    def pause(self) -> None:
        self.transport.pauseProducing()

    def resume(self) -> None:
        self.transport.resumeProducing()

    def close(self) -> None:
        if self.connected:
            self.sender.finish()
            self.transport.abortConnection()


class _Errors(ProcessProtocol):
    """The process, and its error output cut into lines of a bounded length, and read no faster than is good for all."""

    log = Logger()

    def __init__(self, child: Child, clock: IReactorTime) -> None:
        self._child, self._clock = child, clock
        self._framer = Framer(4 * ERROR_LINE_LIMIT)
        self._rest = ERROR_BYTES_A_SECOND
        self._waiting: IDelayedCall | None = None

    def errReceived(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            told = "(a line that is too long)" if isinstance(line, TooLong) else line.decode("utf-8", "replace")
            self._child.error_line(told[:ERROR_LINE_LIMIT])
        self._rest -= len(data)
        if self._waiting is None:
            self._waiting = self._clock.callLater(1.0, self._next_second)
        if self._rest <= 0 and self.transport is not None:
            self.transport.pauseProducing()  # type: ignore[attr-defined]  # no interface has it

    def processExited(self, reason: Failure) -> None:
        self._child.process_ended(reason)

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if self.transport is not None:
            self.transport.loseConnection()

    def _next_second(self) -> None:
        self._waiting = None
        if self._rest <= 0 and self.transport is not None:
            self.transport.resumeProducing()  # type: ignore[attr-defined]  # as above
        self._rest = ERROR_BYTES_A_SECOND


def _words(reason: Failure) -> str:
    status, number = getattr(reason.value, "exitCode", None), getattr(reason.value, "signal", None)
    if number:
        return f"was ended by signal {signal.Signals(number).name}"
    return f"ended with status {status or 0}"
