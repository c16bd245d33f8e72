"""One run of a server as our child: socket pair for messages, pipe for error output, process group of its own."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.protocol import Protocol as StreamProtocol
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer, TooLong
from ironcurtain.mcp_proxy.channel import UNSENT_LIMIT, ChannelOwner, MessageSender, MessageTransport
from ironcurtain.mcp_proxy.launch import Launch
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.services.stream import adopt

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
