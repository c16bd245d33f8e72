"""The body of a response, taken piece by piece: the server waits while nobody asks for more."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone

BUFFERED: Final = 256 * 1024
"""Size in bytes of the pieces in memory from which on the server has to wait."""


class BodyStream(Protocol):
    """Give this to ``deliverBody``, ask for :meth:`next` until it is ``None``, and :meth:`close` it in any case."""

    transport: Any

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size, self._paused, self._closed = 0, False, False
        self._end: Failure | None = None
        self._waiting: Deferred[bytes | None] | None = None

    def next(self) -> Deferred[bytes | None]:
        """:returns: fires with the next piece, with ``None`` at the end, or fails if the response is incomplete."""
        if self._pieces:
            piece = self._pieces.popleft()
            self._size -= len(piece)
            if self._size < BUFFERED:
                self._resume()
            return succeed(piece)
        if self._end is not None:
            return _ended(self._end)
        self._waiting = Deferred()
        return self._waiting

    def close(self) -> None:
        """Take no more. A connection with a response that is incomplete is closed."""
        self._closed = True
        self._pieces.clear()
        if self._end is None and self.transport is not None:
            self._resume()
            self.transport.loseConnection()

    def connectionMade(self) -> None:
        if self._closed:
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        if self._closed:
            return
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(data)
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= BUFFERED and not self._paused:
            self._paused = True
            self.transport.pauseProducing()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._end = reason
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            _ended(reason).chainDeferred(waiting)

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self.transport.resumeProducing()


def _ended(reason: Failure) -> Deferred[bytes | None]:
    return succeed(None) if reason.check(ResponseDone) else fail(reason)
