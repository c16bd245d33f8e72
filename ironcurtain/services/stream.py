"""
asyncio's stream transports for Twisted's protocols, for connections with many small messages.

Under the asyncio reactor, each event of Twisted's own transports passes through both loops, and written data waits for
the reactor's next turn. A relay with them uses 147 us of processor time for a message and its answer; with asyncio's
transports it uses 47 us (``benchmarks/relay.py``, Python 3.11).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from enum import Enum, auto
from struct import pack
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
Maximum bytes of one read. By default asyncio allocates 256 KiB each time, which takes longer than everything else.
"""

BACKLOG = 512
"""Connections that wait to be accepted; programs open many at once, and with 100 some wait for a second."""

_RESET = pack("ii", 1, 0)
"""``struct linger``: closing a TCP connection resets it."""

Wrap = Callable[[IProtocolFactory], IProtocolFactory]
"""Returns a factory whose protocols pass clients on to those of another one, or do not."""


def itself(factory: IProtocolFactory) -> IProtocolFactory:
    """:returns: the same factory: nothing stands in front of it."""
    return factory


class _State(Enum):
    OPEN = auto()
    HALF_CLOSED = auto()
    """Nothing more is written; the peer may go on."""
    OVER = auto()


class StreamTransport(ITCPTransport, IConsumer, IPushProducer):
    """The interface of stream transports, both Twisted's own and :class:`AsyncioTransport`."""


@implementer(IPushProducer)
class FlowSignal:
    """
    Register this as a transport's producer to learn whether it accepts more data.

    A transport that closes calls ``stopProducing``. If the other transport itself were registered, it would close, too,
    in the middle of its output.

    :param full: called with true when the transport's buffer is full, with false when it is empty again.
    """

    def __init__(self, full: Callable[[bool], None]) -> None:
        self._full = full

    def pauseProducing(self) -> None:
        self._full(True)

    def resumeProducing(self) -> None:
        self._full(False)

    def stopProducing(self) -> None:
        pass


@implementer(ITransport, IConsumer, IPushProducer)
class AsyncioTransport(asyncio.BufferedProtocol):
    """
    The transport of a Twisted protocol. Data is written at once, as far as the peer accepts it.

    A registered push producer is paused while data is queued, and resumed when the queue is empty. A half-closeable
    protocol can write after the peer has closed its sending side.

    :param left: called when the connection has ended.
    """

    log = Logger()
    _read_buffer = memoryview(bytearray(READ_SIZE))  # one for all: asyncio fills it right before buffer_updated

    def __init__(self, protocol: IProtocol, left: Callable[[], None] = lambda: None) -> None:
        self._protocol, self._left = protocol, left
        self._transport: Any = None
        self._producer: Any = None
        self._state, self._blocked = _State.OPEN, False

    def write(self, data: bytes) -> None:
        """Write, or queue what cannot be written now. Data is dropped once this side or the connection is closed."""
        if self._state is _State.OPEN:
            self._transport.write(data)

    def writeSequence(self, iovec: Any) -> None:
        """Write several pieces."""
        self.write(b"".join(iovec))

    def loseConnection(self) -> None:
        """Close the connection once all data was written."""
        self._transport.close()

    def abortConnection(self) -> None:
        """Abort the connection, of which a peer by TCP hears at once; queued data is lost."""
        if not self._transport.is_closing() and (same := self._transport.get_extra_info("socket")) is not None:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def loseWriteConnection(self) -> None:
        """Close the sending side."""
        if self._state is _State.OPEN:
            self._state = _State.HALF_CLOSED
        self._transport.write_eof()

    def pauseProducing(self) -> None:
        """Pause reading; data that was read already is still delivered."""
        self._transport.pause_reading()

    def resumeProducing(self) -> None:
        """Resume reading."""
        self._transport.resume_reading()

    def stopProducing(self) -> None:
        """Close, for a consumer that is gone."""
        self.loseConnection()

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """:param producer: a push producer, paused while data is queued."""
        if not streaming or self._producer is not None:
            raise RuntimeError("only one producer at a time, and only one that can be paused")
        self._producer = producer
        if self._state is _State.OVER:
            producer.stopProducing()
        elif self._blocked:
            producer.pauseProducing()

    def unregisterProducer(self) -> None:
        """Stop notifying the producer."""
        self._producer = None

    def setTcpNoDelay(self, enabled: object) -> None:
        """Whether small pieces are sent at once, for a TCP connection; asyncio's always are."""
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, bool(enabled))

    def fileno(self) -> int:
        """:returns: the socket's descriptor."""
        return int(self._transport.get_extra_info("socket").fileno())

    def getHost(self) -> IPv4Address | IPv6Address | UNIXAddress:
        """:returns: this side's address; UNIX sockets have none."""
        return _address(self._transport.get_extra_info("sockname"))

    def getPeer(self) -> IPv4Address | IPv6Address | UNIXAddress:
        """:returns: the peer's address."""
        return _address(self._transport.get_extra_info("peername"))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """For asyncio."""
        self._transport = transport
        self._transport.set_write_buffer_limits(high=0)
        self._protocol.makeConnection(self)
        if not self._transport.is_reading():
            # Some versions of Python (such as 3.11.2) start reading after this call although it is paused.
            asyncio.get_running_loop().call_soon(self._pause_again)

    def _pause_again(self) -> None:
        if not self._transport.is_reading():
            self._transport.resume_reading()
            self._transport.pause_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        """:returns: for asyncio, the read buffer."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """For asyncio: so many bytes were read."""
        try:
            self._protocol.dataReceived(bytes(self._read_buffer[:nbytes]))
        except Exception:
            self.log.failure("closing a connection after a failure to handle its data")
            self.abortConnection()

    def eof_received(self) -> bool:
        """:returns: for asyncio, whether the sending side stays open."""
        if not IHalfCloseableProtocol.providedBy(self._protocol):
            return False
        self._protocol.readConnectionLost()
        return True

    def pause_writing(self) -> None:
        """For asyncio: data is queued."""
        self._blocked = True
        if self._producer is not None:
            self._producer.pauseProducing()

    def resume_writing(self) -> None:
        """For asyncio: the queue is empty."""
        self._blocked = False
        if self._producer is not None:
            self._producer.resumeProducing()

    def connection_lost(self, exc: Exception | None) -> None:
        """For asyncio."""
        self._state = _State.OVER
        self._left()
        reason = ConnectionDone() if exc is None else ConnectionLost(str(exc))
        self._protocol.connectionLost(Failure(reason))


def _address(name: Any) -> IPv4Address | IPv6Address | UNIXAddress:
    if not isinstance(name, tuple):
        return UNIXAddress(None)
    return (IPv4Address if len(name) == 2 else IPv6Address)("TCP", *name[:2])


async def adopt(connection: socket.socket, protocol: IProtocol) -> None:
    """
    Connect a protocol to a connected stream socket.

    :param connection: owned by the transport from now on, and closed if this fails.
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
    Connect a protocol to a UNIX socket.

    :raises OSError: nobody listens there.
    """

    async def connected() -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: AsyncioTransport(protocol), path)

    await from_asyncio(connected())


class ConnectionFilter(Protocol):
    """Decides which clients are accepted."""

    def enter(self, connection: socket.socket) -> bool:
        """:returns: whether to accept a client; if so, :meth:`leave` is called when it disconnects."""

    def leave(self) -> None:
        """A client disconnected."""


class _Unlimited:
    def enter(self, connection: socket.socket) -> bool:
        return True

    def leave(self) -> None:
        pass


class _Accepted(asyncio.Protocol):
    """Checks one client before creating a protocol for it."""

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
    Accept clients.

    :param listening: a bound stream socket; owned by the server from now on, and closed if this fails.
    :param admission: decides which clients are accepted; ``None``: all.
    """

    def build() -> asyncio.BaseProtocol:
        return _Accepted(factory, admission or _Unlimited())

    async def served() -> asyncio.Server:
        server = await asyncio.get_running_loop().create_server(
            build, sock=listening, backlog=BACKLOG, start_serving=False
        )
        try:
            await server.start_serving()
        except BaseException:  # the loop has already registered it
            server.close()
            raise
        return server

    try:
        return await from_asyncio(served())
    except BaseException:
        listening.close()
        raise
