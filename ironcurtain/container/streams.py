"""
Streaming connections to the Engine: terminals and programs of containers, and builds.

See "attach" and "exec start" in the Engine's documentation: after the response's head, such a connection carries raw
bytes in both directions. Output of a program without a terminal is framed: one byte names the stream, then follow three
zero bytes, four bytes of length, and the content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IPushProducer, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.framing import Framing, UntilClose
from ironcurtain.http.head import HeadReader, read_response

STDOUT, STDERR = 1, 2
"""The output streams of a program. 0 is its input and 3 an error of the Engine; both count as STDERR here."""

REFUSAL_LIMIT = 16 * 1024
"""Maximum number of bytes kept of an error response, for the message."""

_FRAME_HEAD = 8

Receiver = Callable[[bytes], Deferred[None] | None]
"""Called with bytes as they arrive. If it returns a Deferred, reading pauses until that fires."""


class EngineTransport(ITCPTransport, IConsumer, IPushProducer):
    """The interface of Twisted's stream transports."""


class EngineStream(Protocol):
    """
    One request, and its streamed response.

    :param target: target of the ``POST`` request.
    :param upgrade: whether the connection becomes a raw stream in both directions after the response's head.
    :param receive: called with the response's body, or the raw bytes.
    :param address: address of the Engine, for messages.
    :param headers: further ones of the request.
    :ivar opened: fires when the Engine accepts; fails with :class:`EngineError` if it refuses, and with
        :class:`EngineUnavailable` if it goes away. Cancelling it closes the connection.
    :ivar ended: fires when the connection has ended and the last byte was taken.
    :ivar whole: whether the end of the body has arrived, if its length is known.
    """

    log = Logger()
    transport: EngineTransport

    def __init__(
        self,
        target: str,
        body: bytes,
        content_type: str,
        upgrade: bool,
        receive: Receiver,
        address: str,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        connection = "Connection: Upgrade\r\nUpgrade: tcp" if upgrade else "Connection: close"
        further = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._request = (
            f"POST {target} HTTP/1.1\r\nHost: docker\r\n{connection}\r\n{further}"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode() + body
        self._receive, self._address = receive, address
        self._reader = HeadReader()
        self._framing: Framing | None = None
        self._refusal, self._refused = bytearray(), 0
        self._untaken = 0
        self.opened: Deferred[None] = Deferred(lambda _: self.abort())
        self.ended: Deferred[None] = Deferred()

    @property
    def whole(self) -> bool:
        return self._framing is not None and self._framing.done

    def write(self, data: bytes) -> None:
        """Send bytes. Only once the stream is open, since the Engine loses earlier ones."""
        self.transport.write(data)

    def end_input(self) -> None:
        """Close the sending side. Written data still arrives, and the other direction stays open."""
        self.transport.loseWriteConnection()

    def register_producer(self, producer: IPushProducer) -> None:
        """Pause ``producer`` while much written data is queued."""
        self.transport.registerProducer(producer, True)

    def unregister_producer(self) -> None:
        """Undo :meth:`register_producer`."""
        self.transport.unregisterProducer()

    def abort(self) -> None:
        """Abort the connection. The program at its other end is not notified."""
        if self.transport is not None:
            self.transport.abortConnection()

    def connectionMade(self) -> None:
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        try:
            if self._framing is None:
                data = self._begin(data)
            if self._framing is not None:
                self._take(self._framing, data)
        except ProtocolViolation as e:
            self.log.warn("dropped a connection to {address}: {error}", address=self._address, error=e)
            self._fail(EngineUnavailable(self._address, e.detail))
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._refused:
            self._fail(EngineError(self._refused, error_message(bytes(self._refusal))))
        self._fail(EngineUnavailable(self._address, "it closed the connection"))
        self.ended.callback(None)

    def _begin(self, data: bytes) -> bytes:
        """:returns: the bytes after the head."""
        if (found := self._reader.feed(data)) is None:
            return b""
        head, rest = found
        response = read_response(head, "POST")
        if response.status in (101, 200):
            self._framing = UntilClose() if response.status == 101 else response.framing
            self.opened.callback(None)
        else:
            self._framing, self._refused = response.framing, response.status
        return rest

    def _take(self, framing: Framing, data: bytes) -> None:
        payload, _ = framing.feed(data)
        if self._refused:
            self._refusal += payload[: REFUSAL_LIMIT - len(self._refusal)]
        elif payload:
            self._hand_over(payload)
        if framing.done:
            self.abort()

    def _hand_over(self, data: bytes) -> None:
        taken = self._receive(data)
        if taken is not None and not taken.called:
            self._untaken += 1
            self.transport.pauseProducing()
            taken.addBoth(self._resume)

    def _resume(self, _: object) -> None:
        self._untaken -= 1
        if not self._untaken:
            self.transport.resumeProducing()

    def _fail(self, error: Exception) -> None:
        if not self.opened.called:
            self.opened.errback(error)


def error_message(body: bytes) -> str:
    """:returns: the message in an error's body, for people."""
    try:
        return msgspec.json.decode(body, type=dict[str, str])["message"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return body.decode("utf-8", "replace").strip()


class Demultiplexer(msgspec.Struct):
    """Splits a stream of frames, without waiting for complete frames."""

    _head: bytearray = msgspec.field(default_factory=bytearray)
    _stream: int = STDOUT
    _left: int = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """
        Process bytes in any slicing.

        :returns: pieces in order, each with :data:`STDOUT` or :data:`STDERR`; none of them empty.
        :raises ProtocolViolation: it is not a stream of frames.
        """
        pieces = []
        view, at = memoryview(data), 0
        while at < len(data):
            if self._left:
                piece = bytes(view[at : at + self._left])
                self._left -= len(piece)
                at += len(piece)
                pieces.append((self._stream, piece))
            else:
                wanted = _FRAME_HEAD - len(self._head)
                self._head += view[at : at + wanted]
                at += wanted
                self._begin()
        return pieces

    def _begin(self) -> None:
        if len(self._head) < _FRAME_HEAD:
            return
        if self._head[0] > 3 or any(self._head[1:4]):
            raise ProtocolViolation("Docker Engine", f"a frame that begins with {bytes(self._head)!r}")
        self._stream = STDOUT if self._head[0] == STDOUT else STDERR
        self._left = int.from_bytes(self._head[4:], "big")
        self._head.clear()
