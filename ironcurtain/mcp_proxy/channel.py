"""Transport of messages to one run of a server: over the streams of a child process, or by HTTP."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlsplit

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorProcess, IReactorTime
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.protocol import Protocol as StreamProtocol
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from ironcurtain.errors import Unavailable
from ironcurtain.http.trust import ssl_context
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.jsonrpc.codec import Id
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT, Framer, TooLong
from ironcurtain.mcp_proxy.launch import Launch
from ironcurtain.mcp_proxy.logins import LoginFiles
from ironcurtain.mcp_proxy.sending import MessageSender, MessageTransport
from ironcurtain.mcp_proxy.servers_config import HttpServer, is_header_value
from ironcurtain.mcp_proxy.session import INITIALIZE
from ironcurtain.network.gateway import Gateway
from ironcurtain.process.directory import in_directory
from ironcurtain.process.termination import signal_group
from ironcurtain.sandbox import cgroups
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.bubblewrap_options import HANDOVER_DESCRIPTOR
from ironcurtain.secrets.redaction import Redactor, Secret
from ironcurtain.services.stream import adopt

if TYPE_CHECKING:
    from ssl import SSLContext

    from ironcurtain.mcp_proxy.http_channel import HttpChannel
    from ironcurtain.mcp_proxy.oauth import StoredTokens

UNSENT_LIMIT = 16 * 1024 * 1024
"""Maximum bytes queued for a server that does not read: 16 MiB, twice an agent's largest message."""


class ChannelOwner(Protocol):
    """Receives the events of a channel."""

    def line_received(self, line: bytes | TooLong) -> None:
        """The server sent a message, or one that is too long."""

    def unread(self, request: Id | None, why: str) -> None:
        """The server's answer to a request cannot be read."""

    def error_line(self, line: str) -> None:
        """There is a line for the log: from a child's standard error, or about an HTTP answer."""

    def gone(self, why: str) -> None:
        """The server ended, or cannot be reached. No further event follows. Called once."""


class ServerChannel(Protocol):
    """The connection to one run of a server. Its owner gets its events until :meth:`stop` is called."""

    pid: int
    """The server's process id; 0 if it does not run on this machine."""
    opening: str
    """The method that finds out the server's revision."""

    @property
    def choked(self) -> bool:
        """Whether the queue to the server is full, so that nothing can be sent."""

    async def connect(self) -> None:
        """Connect. Only then may messages be written."""

    def write(self, line: bytes) -> None:
        """Send a message; ignored if the server is gone."""

    def pause(self) -> None:
        """Stop reading for now."""

    def resume(self) -> None:
        """Resume reading."""

    async def stop(self) -> None:
        """End this run of the server, with all its processes."""


MakeChannel = Callable[[ChannelOwner], ServerChannel]
"""Creates the channel of a new run of a server."""


async def way_to(
    server: HttpServer,
    secrets: Mapping[str, Secret],
    logins: LoginFiles,
    redactor: Redactor,
    clock: IReactorTime,
    proxies: UpstreamProxies,
) -> MakeChannel:
    """
    :param secrets: header name to the output of its ``headers_command``.
    :param logins: the kept logins, for a server without a configured ``Authorization`` header.
    :param redactor: learns the possible keys in the headers and the URL.
    :param proxies: upstream proxies.
    :raises Unavailable: a header cannot be sent.
    :raises ConfigurationError: ``ca_file`` cannot be used.
    """
    headers = {**server.headers, **secrets}
    for name, secret in headers.items():
        if not is_header_value(secret.reveal()):
            raise Unavailable(
                f"MCP server {server.name}: the output of its command for the header {name} cannot be sent"
            )
        for part in (secret.reveal(), *secret.reveal().split()):  # also without a scheme such as Bearer
            redactor.add(Secret(part))
    for name, value in parse_qsl(urlsplit(server.url.reveal()).query, keep_blank_values=True):
        redactor.add(Secret(value or name))
    context, channel, tokens = await deferToThread(_prepared, server.ca_file)
    if any(name.lower() == "authorization" for name in headers):
        auth, unauthorized = None, "refused the configured headers (HTTP status 401)"
    else:
        auth = tokens(logins.of(server.name), server.url, redactor)
        unauthorized = f"needs a login: ironcurtain mcp login {server.name}"
    return partial(channel, server.url, headers, context, proxies, clock, auth, unauthorized)


def _prepared(ca_file: str) -> tuple[SSLContext, type[HttpChannel], type[StoredTokens]]:
    # In a thread: importing the SDK takes a second, and reading the system's certificates 30 ms.
    from ironcurtain.mcp_proxy.http_channel import HttpChannel
    from ironcurtain.mcp_proxy.oauth import StoredTokens

    return ssl_context(ca_file), HttpChannel, StoredTokens


ERROR_LINE_LIMIT = 2000
"""Maximum length in characters of a line of a server's standard error."""

POLITE_SECONDS = 1.0
"""Seconds between the end of a server's input and SIGTERM."""

TERM_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL (all processes of a server end within 8 s)."""


END_SECONDS = 0.5
"""
Seconds between the first of three events, a server's exit and the ends of its output and its standard error, until it
counts as gone without the others: its last lines are read, and its exit status is known.
"""


SETTLE_STEP, SETTLE_TRIES = 0.01, 50
"""Seconds between looks whether a sandbox's last processes have ended, and how many; usually one is enough."""


class ChildReactor(IReactorProcess, IReactorTime):
    """The parts of a reactor that a child needs."""


class Child:
    """
    :param owner: receives the events until :meth:`stop` is called.
    :param gateway: accepts what it connects to, if its sandbox has a network.
    """

    opening = INITIALIZE  # some servers end at any other first request

    def __init__(self, reactor: ChildReactor, launch: Launch, gateway: Gateway | None, owner: ChannelOwner) -> None:
        self._reactor, self._owner, self._gateway = reactor, owner, gateway
        self._gone, self._why, self._said = False, "closed its output", ""
        self._lasting = {"exit", "output", "errors"}
        self._is_own, self._is_confined = launch.own, launch.own or launch.sandbox is not None
        self._ending: IDelayedCall | None = None
        self._exited: Deferred[None] = Deferred()
        self._stream, self._errors = _Stream(self), _Errors(self)
        self._ours, theirs = socket.socketpair()
        with theirs, opened(launch.inputs) as inputs:
            if gateway is not None:
                inputs[HANDOVER_DESCRIPTOR] = gateway.handover().theirs.detach()  # closed like the others
            line, place = in_directory(launch.cwd, launch.argv)
            self._process = reactor.spawnProcess(
                self._errors,
                line[0],
                line,
                dict(launch.environment),
                place,
                childFDs={0: theirs.fileno(), 1: theirs.fileno(), 2: "r", **inputs},
            )
        self.pid = int(self._process.pid or 0)

    async def connect(self) -> None:
        """See :class:`~ironcurtain.mcp_proxy.channel.ServerChannel`, also for the following methods."""
        await adopt(self._ours, self._stream)

    @property
    def choked(self) -> bool:
        """Whether the queue to the server is full, so that nothing can be sent."""
        return self._stream.sender.waiting > UNSENT_LIMIT

    def write(self, line: bytes) -> None:
        """Send a line."""
        if not self._gone:
            self._stream.sender.send(line)

    def pause(self) -> None:
        """Stop reading for now."""
        self._stream.pause()

    def resume(self) -> None:
        """Resume reading."""
        self._stream.resume()

    async def stop(self) -> None:
        """Close its input, then end it and all processes that are still in its session."""
        self._gone = True
        self._stop_waiting()
        self._stream.close()
        self._ours.close()  # if it was not connected
        if not await self._left_within(POLITE_SECONDS):
            self._signal(signal.SIGTERM)
            await self._left_within(TERM_SECONDS)
        self._signal(signal.SIGKILL)
        if not self._exited.called:
            await self._exited
        self._errors.close()
        if self._gateway is not None:
            await self._gateway.stop()
        if self._is_confined:
            await self._settle()

    def received(self, line: bytes | TooLong) -> None:
        """For the stream: a line arrived."""
        if not self._gone:
            self._owner.line_received(line)

    def error_line(self, line: str) -> None:
        """For standard error: a line arrived."""
        if self._is_own:  # others' lines may contain anything, and belong into the log
            self._said = line
        self._owner.error_line(line)

    def process_ended(self, reason: Failure) -> None:
        """For the process: it exited."""
        self._exited.callback(None)
        self._why = _words(reason)
        self.part_ended("exit")

    def part_ended(self, part: str) -> None:
        """For the stream and standard error: one of them ended."""
        if self._gone:
            return
        self._lasting.discard(part)
        if not self._lasting:
            self._stop_waiting()
            self._went()
        elif self._ending is None:
            self._ending = self._reactor.callLater(END_SECONDS, self._went)

    def _went(self) -> None:
        self._gone = True
        self._owner.gone(f"{self._why}: {self._said}" if self._said else self._why)

    def _stop_waiting(self) -> None:
        if self._ending is not None and self._ending.active():
            self._ending.cancel()

    async def _left_within(self, seconds: float) -> bool:
        if self._exited.called:
            return True
        timer: Deferred[None] = deferLater(self._reactor, seconds)
        self._exited.addBoth(lambda _: timer.cancel())
        timer.addErrback(lambda _: None)
        await timer
        return self._exited.called

    async def _settle(self) -> None:
        """Remove its cgroup, which its last processes may still be about to leave."""
        for _ in range(SETTLE_TRIES):
            if cgroups.sweep():
                return
            await deferLater(self._reactor, SETTLE_STEP)

    def _signal(self, number: int) -> None:
        # The process group exists only after the process has called setsid; until then, signal the process itself. Once
        # that was waited for, its id may be another's; that of the group is not, as long as others are in it.
        signal_group(self.pid, number)
        if not self._exited.called:
            with suppress(ProcessExitedAlready):
                self._process.signalProcess(signal.Signals(number).name.removeprefix("SIG"))


class _Stream(StreamProtocol):
    """The proxy's end of the socket pair: reads and writes lines, and counts queued bytes."""

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
        self._child.part_ended("output")

    def pause(self) -> None:
        self.transport.pauseProducing()

    def resume(self) -> None:
        self.transport.resumeProducing()

    def close(self) -> None:
        if self.connected:
            self.sender.finish()
            self.transport.abortConnection()


class _Errors(ProcessProtocol):
    """
    Process protocol that splits standard error into lines of bounded length. All of it is read as it comes, so that no
    server has to wait; how many lines are logged is their receiver's matter.
    """

    def __init__(self, child: Child) -> None:
        self._child, self._framer = child, Framer(4 * ERROR_LINE_LIMIT)

    def errReceived(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            text = "(a line that is too long)" if isinstance(line, TooLong) else line.decode("utf-8", "replace")
            self._child.error_line(text[:ERROR_LINE_LIMIT])

    def errConnectionLost(self) -> None:
        self._child.part_ended("errors")

    def processExited(self, reason: Failure) -> None:
        self._child.process_ended(reason)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()


def _words(reason: Failure) -> str:
    status, number = getattr(reason.value, "exitCode", None), getattr(reason.value, "signal", None)
    if number:
        return f"was ended by signal {signal.Signals(number).name}"
    return f"ended with status {status or 0}"
