"""How messages travel: what one run of a server needs of the way to it, be that a child's streams or HTTP."""

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
