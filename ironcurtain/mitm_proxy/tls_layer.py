"""
TLS between a transport, which carries encrypted bytes, and a protocol, which sees them decrypted.

The standard library encrypts and decrypts in memory (``ssl.MemoryBIO``): nothing here touches a socket. The transport
gets records at once, one ``write`` for each that the protocol makes, and its own back-pressure is all there is.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any

from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

RECORD = 16 * 1024
"""Most bytes that one record holds (RFC 8446 section 5.1)."""

PIECE = 64 * 1024
"""How many bytes are encrypted at a time: the buffers of OpenSSL grow to it, and never shrink."""


class NamedConnection(ssl.SSLObject):
    """One connection's TLS, which remembers whom the client wanted to talk to."""

    server_name = ""
    """The host that the client named (SNI), in lower case; empty if it named none, and on the client's own side."""


class TLSLayer(Protocol):
    """
    The protocol of an encrypted transport, and the transport of the protocol inside.

    The protocol inside is told ``handshakeCompleted`` once the other side has shown all that it has to show; before,
    nothing is to be written. It loses its connection with ``ConnectionDone`` only if the other side said goodbye as TLS
    wants it (``close_notify``): an end without that may be somebody else's doing, and is ``ConnectionLost``.

    :param context: says which side this is, and what is believed; its ``sslobject_class`` is :class:`NamedConnection`.
    :param host: on the client's side, whose certificate the server must have.
    """

    transport: Any

    def __init__(self, context: ssl.SSLContext, inside: Any, host: str | None = None) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: Any = context.wrap_bio(
            self._incoming, self._outgoing, server_side=host is None, server_hostname=host
        )
        self._inside = inside
        self._shaken = self._parting = self._parted = False
        self._error: Exception | None = None

    @property
    def server_name(self) -> str:
        """See :class:`NamedConnection`."""
        name: str = self._tls.server_name
        return name

    def connectionMade(self) -> None:
        self._inside.makeConnection(self)
        self._shake()

    def dataReceived(self, data: bytes) -> None:
        if self._error is not None:
            return
        self._incoming.write(data)
        if self._shaken or self._shake():
            self._read()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.connected = 0
        if self._error is None:
            self._error = ConnectionDone() if self._parted else ConnectionLost("it ended without a TLS close_notify")
        self._inside.connectionLost(Failure(self._error))

    # What the protocol inside calls.

    def write(self, data: bytes) -> None:
        """Send bytes. After :meth:`loseConnection` they go nowhere."""
        if self._parting or not self._shaken:
            return
        if len(data) <= PIECE:
            self._encrypt(data)
            return
        for start in range(0, len(data), PIECE):
            self._encrypt(data[start : start + PIECE])

    def loseConnection(self) -> None:
        """Say goodbye, after all that was written; the connection ends when the other side has said it too."""
        if self._parting:
            return
        self._parting = True
        if self._shaken:
            self._say_goodbye()
        else:
            self.transport.loseConnection()

    def abortConnection(self) -> None:
        """End the connection now, without a goodbye: half a message must not seem to be whole."""
        self._parting = True
        self.transport.abortConnection()

    def pauseProducing(self) -> None:
        """Read no more for now."""
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Read again."""
        self.transport.resumeProducing()

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """:param producer: paused while what was written waits to go out; a streaming one."""
        self.transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """Nobody is to be paused any more."""
        self.transport.unregisterProducer()

    # Between the two.

    def _shake(self) -> bool:
        """:returns: whether the handshake is over."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            return False
        except ssl.SSLError as e:
            self._fail(e)
            return False
        self._send()
        self._shaken = True
        self._inside.handshakeCompleted()
        return True

    def _read(self) -> None:
        tls, incoming = self._tls, self._incoming
        pieces: list[bytes] = []
        error: Exception | None = None
        try:
            while piece := tls.read(RECORD):
                pieces.append(piece)
                if not incoming.pending and not tls.pending():
                    break
            else:
                self._parted = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._parted = True
        except ssl.SSLError as e:
            error = e
        self._send()
        if pieces and not self._parting:
            self._inside.dataReceived(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if error is not None:
            self._fail(error)
        elif self._parted:
            self._end()

    def _encrypt(self, data: bytes) -> None:
        if not data or self._error is not None:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as e:
            self._fail(e)
        else:
            self.transport.write(self._outgoing.read())

    def _send(self) -> None:
        if self._outgoing.pending:
            self.transport.write(self._outgoing.read())

    def _say_goodbye(self) -> None:
        with suppress(ssl.SSLError):  # the other side's goodbye is not there yet
            self._tls.unwrap()
        self._send()

    def _end(self) -> None:
        """The other side has said goodbye."""
        if not self._parting:
            self._parting = True
            self._say_goodbye()
        self.transport.loseConnection()

    def _fail(self, error: Exception) -> None:
        """Nothing more can be understood, or said; the other side is told why, if TLS has a word for it."""
        self._error, self._parting = error, True
        self._send()
        self.transport.loseConnection()
