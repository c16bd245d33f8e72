"""
Twisted's protocols on asyncio's stream transports, for connections that carry many small messages.

Under the asyncio reactor each event of one of Twisted's own transports passes through both loops, and what is written
waits for the reactor's next turn. A relay on them costs 147 us of processor time for a message and its answer; the same
relay on asyncio's transports costs 47 us (``benchmarks/relay.py``, Python 3.11).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IConsumer,
    IHalfCloseableProtocol,
    IProtocol,
    IProtocolFactory,
    IPushProducer,
    ITCPTransport,
    ITransport,
)
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.services.asyncio_bridge import from_asyncio

READ_SIZE = 64 * 1024
"""
Most bytes of one read. Left to itself, asyncio asks for memory of 256 KiB each time, which takes longer than all else
that it does.
"""


class StreamTransport(ITCPTransport, IConsumer, IPushProducer):
    """What stream transports are, Twisted's own and :class:`AsyncioTransport`."""


@implementer(ITransport, IConsumer, IPushProducer)
class AsyncioTransport(asyncio.BufferedProtocol):
    """
    The transport of a Twisted protocol. What is written goes out at once, as far as the other side takes it.

    A producer that is registered (a push producer) is paused while anything waits to go out, and resumed when nothing
    does. A protocol that is half-closeable keeps writing when the other side sends no more.

    :param left: is called when the connection has ended.
    """

    log = Logger()

    def __init__(self, protocol: IProtocol, left: Callable[[], None] = lambda: None) -> None:
        self._protocol, self._left = protocol, left
        self._transport: Any = None
        self._producer: Any = None
        self._buffer = bytearray()
        self._blocked = self._write_closed = self._over = False

    def write(self, data: bytes) -> None:
        """Send, or keep what cannot be sent now. After :meth:`loseWriteConnection` it goes nowhere."""
        if not self._write_closed:
            self._transport.write(data)

    def writeSequence(self, iovec: Any) -> None:
        """Send several pieces."""
        self.write(b"".join(iovec))

    def loseConnection(self) -> None:
        """End the connection once all that was written is out."""
        self._transport.close()

    def abortConnection(self) -> None:
        """End the connection now; what the other side could not take yet is lost."""
        self._transport.abort()

    def loseWriteConnection(self) -> None:
        """Say that nothing more will be written."""
        self._write_closed = True
        self._transport.write_eof()

    def pauseProducing(self) -> None:
        """Read no more for now; what was read already is still given."""
        self._transport.pause_reading()

    def resumeProducing(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def stopProducing(self) -> None:
        """For a consumer that has gone."""
        self.loseConnection()

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """:param producer: is paused while anything waits; a push producer."""
        if not streaming or self._producer is not None:
            raise RuntimeError("only one producer at a time, and only one that can be paused")
        self._producer = producer
        if self._over:
            producer.stopProducing()
        elif self._blocked:
            producer.pauseProducing()

    def unregisterProducer(self) -> None:
        """Tell nobody any more that something waits."""
        self._producer = None

    def fileno(self) -> int:
        """:returns: the socket's descriptor."""
        return int(self._transport.get_extra_info("socket").fileno())

    def getHost(self) -> IPv4Address | IPv6Address | UNIXAddress:
        """:returns: our address; UNIX sockets have none, as only the two sides know each other."""
        return _address(self._transport.get_extra_info("sockname"))

    def getPeer(self) -> IPv4Address | IPv6Address | UNIXAddress:
        """:returns: the other side's address."""
        return _address(self._transport.get_extra_info("peername"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """For asyncio."""
        self._transport = transport
        self._transport.set_write_buffer_limits(high=0)
        self._protocol.makeConnection(self)

    def get_buffer(self, sizehint: int) -> bytearray:
        """:returns: for asyncio, where to put what comes."""
        self._buffer = bytearray(READ_SIZE)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """For asyncio: so much came."""
        data, self._buffer = bytes(memoryview(self._buffer)[:nbytes]), bytearray()
        try:
            self._protocol.dataReceived(data)
        except Exception:
            self.log.failure("a connection is ended, since what it sent could not be handled")
            self.abortConnection()

    def eof_received(self) -> bool:
        """:returns: for asyncio, whether the connection stays open to be written to."""
        if not IHalfCloseableProtocol.providedBy(self._protocol):
            return False
        self._protocol.readConnectionLost()
        return True

    def pause_writing(self) -> None:
        """For asyncio: something waits."""
        self._blocked = True
        if self._producer is not None:
            self._producer.pauseProducing()

    def resume_writing(self) -> None:
        """For asyncio: nothing waits."""
        self._blocked = False
        if self._producer is not None:
            self._producer.resumeProducing()

    def connection_lost(self, exc: Exception | None) -> None:
        """For asyncio."""
        self._over = True
        self._left()
        reason = ConnectionDone() if exc is None else ConnectionLost(str(exc))
        self._protocol.connectionLost(Failure(reason))


def _address(name: Any) -> IPv4Address | IPv6Address | UNIXAddress:
    if not isinstance(name, tuple):
        return UNIXAddress(None)
    return (IPv4Address if len(name) == 2 else IPv6Address)("TCP", *name[:2])


async def adopt(connection: socket.socket, protocol: IProtocol) -> None:
    """
    Let a protocol speak over a connected stream socket.

    :param connection: belongs to the transport from now on, and is closed if this fails.
    """
    connection.setblocking(False)

    async def adopted() -> None:
        await asyncio.get_running_loop().create_connection(lambda: AsyncioTransport(protocol), sock=connection)

    try:
        await from_asyncio(adopted())
    except BaseException:
        connection.close()
        raise


async def connect(path: str, protocol: IProtocol) -> None:
    """
    Let a protocol speak over a connection to a UNIX socket.

    :raises OSError: nobody listens there.
    """

    async def connected() -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: AsyncioTransport(protocol), path)

    await from_asyncio(connected())


class ConnectionFilter(Protocol):
    """Says which clients may stay."""

    def enter(self, connection: socket.socket) -> bool:
        """:returns: whether a client may; if so, :meth:`leave` is called once it has gone."""

    def leave(self) -> None:
        """A client has gone."""


class _Unlimited:
    def enter(self, connection: socket.socket) -> bool:
        return True

    def leave(self) -> None:
        pass


class _Accepted(asyncio.Protocol):
    """Decides about one client before a protocol is made for it."""

    def __init__(self, factory: IProtocolFactory, admission: ConnectionFilter) -> None:
        self._factory, self._admission = factory, admission

    def connection_made(self, transport: Any) -> None:
        """For asyncio."""
        if not self._admission.enter(transport.get_extra_info("socket")):
            transport.abort()
        elif (protocol := self._factory.buildProtocol(UNIXAddress(None))) is None:
            self._admission.leave()
            transport.abort()
        else:
            stream = AsyncioTransport(protocol, self._admission.leave)
            transport.set_protocol(stream)
            stream.connection_made(transport)


async def serve(
    listening: socket.socket, factory: IProtocolFactory, admission: ConnectionFilter | None = None
) -> asyncio.Server:
    """
    Let clients in.

    :param listening: a stream socket that is bound; belongs to the server from now on, and is closed if this fails.
    :param admission: says which clients may stay; ``None``: all.
    """

    def build() -> asyncio.BaseProtocol:
        return _Accepted(factory, admission or _Unlimited())

    async def served() -> asyncio.Server:
        server = await asyncio.get_running_loop().create_server(build, sock=listening, start_serving=False)
        try:
            await server.start_serving()
        except BaseException:  # it is known to the loop already
            server.close()
            raise
        return server

    try:
        return await from_asyncio(served())
    except BaseException:
        listening.close()
        raise
