"""The terminal of this process, as a channel of the reactor."""

from __future__ import annotations

from typing import Any, Protocol

from twisted.internet import fdesc
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IPushProducer
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.terminal.direct import DirectDescriptor
from ironcurtain.terminal.raw import RawMode

FLUSH_SECONDS = 1.0
"""Time limit in seconds for flushing the last output before the terminal is restored."""

WRITE_SIZE = 16 * 1024
"""Number of bytes per write (the kernel takes fewer)."""


class TerminalUser(Protocol):
    """Receives the terminal's events."""

    def received(self, read: bytes) -> None:
        """Input, the bytes of one read."""

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has a new size."""

    def drained(self) -> None:
        """The terminal accepts output again."""

    def lost(self) -> None:
        """The terminal is gone: its window was closed, or its connection broke."""


@implementer(IPushProducer)
class LocalTerminal(DirectDescriptor):
    """
    A terminal, as a channel.

    :param reactor: for reading, writing and time.
    :param raw: the terminal, which may be in raw mode already; ``None``: that of standard input.
    :raises NoTerminal: standard input is not a terminal.
    :ivar closed: fires when the terminal is restored, with the status passed to :meth:`close`.
    """

    reactor: Any

    def __init__(self, reactor: Any, raw: RawMode | None = None) -> None:
        super().__init__(reactor)
        self._raw = raw or RawMode()
        self._user: TerminalUser | None = None
        self._status: int | None = None
        self.blocked = False
        self.closed: Deferred[int | None] = Deferred()

    def begin(self, user: TerminalUser) -> None:
        """Switch to raw mode. Call it once. Input goes to ``user``."""
        self._user = user
        self._raw.begin()
        self._raw.on_resize(lambda: self.reactor.callFromThread(self._resized))
        self.connected = 1
        self.registerProducer(self, True)
        self.startReading()

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows; the default size if unknown."""
        return self._raw.size()

    def hold(self, full: bool) -> None:
        """:param full: whether to pause reading keys."""
        if self.connected:
            (self.stopReading if full else self.startReading)()

    def close(self, status: int | None) -> None:
        """Flush output, then restore the terminal. Can be called twice."""
        if not self.connected or self.disconnecting:
            return
        self._user, self._status = None, status
        self.unregisterProducer()
        self.loseConnection()
        late = self.reactor.callLater(FLUSH_SECONDS, self.connectionLost, Failure(ConnectionDone()))

        def in_time(result: int | None) -> int | None:
            if late.active():
                late.cancel()
            return result

        self.closed.addBoth(in_time)

    def undo(self) -> None:
        """Restore the terminal at once; unflushed output is lost. Can be called twice."""
        self._raw.undo()

    def fileno(self) -> int:
        """For the reactor."""
        return self._raw.opened

    def doRead(self) -> Any:
        """For the reactor."""
        return fdesc.readFromFD(self._raw.opened, _nobody if self._user is None else self._user.received)

    def writeSomeData(self, data: bytes) -> Any:
        """For the transport's buffer: a terminal takes a few KiB at once, and more soon after."""
        done = 0
        while done < len(data):
            written = fdesc.writeToFD(self._raw.opened, data[done : done + WRITE_SIZE])
            if not isinstance(written, int):
                return done or written  # an end is detected again
            if written == 0:
                break
            done += written
        return done

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: it is gone, or all output is written after :meth:`close`."""
        if not self.connected:
            return
        super().connectionLost(reason)
        self._raw.close()
        user, self._user = self._user, None
        if user is not None:
            user.lost()
        self.closed.callback(self._status)

    def pauseProducing(self) -> None:
        """For the transport's buffer: much data is queued."""
        self.blocked = True

    def resumeProducing(self) -> None:
        """For the transport's buffer: all data was written."""
        was, self.blocked = self.blocked, False
        if was and self._user is not None:
            self._user.drained()

    def stopProducing(self) -> None:
        """For the transport's buffer: it is gone."""

    def _resized(self) -> None:
        if self._user is not None:
            self._user.resized(*self.size())


def _nobody(read: bytes) -> None:
    """Discards input while closing."""
