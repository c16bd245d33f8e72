"""Lines of standard input."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.stdio import StandardIO
from twisted.python.failure import Failure

from ironcurtain.watchers.lines import MatchingLines
from ironcurtain.watchers.model import Event, Watcher

READ_SIZE = 65536
"""Number of bytes of a regular file that are read at once."""


class StdinTrigger(Protocol):
    """
    A :class:`~ironcurtain.watchers.trigger.Trigger` for lines of standard input that match the pattern.

    :param reactor: the reactor.
    :param ended: fired when the input has ended.
    """

    def __init__(self, watcher: Watcher, reactor: Any, ended: Deferred[None]) -> None:
        self._lines, self._reactor, self._ended = MatchingLines(watcher.pattern), reactor, ended
        self._fire: Callable[[Event], None] = lambda event: None
        self._unused: BinaryIO | None = None

    def start(self, fire: Callable[[Event], None]) -> None:
        """Begin to read."""
        self._fire = fire
        if stat.S_ISREG(os.fstat(0).st_mode):  # for which the kernel has no events
            self._reactor.callLater(0, self._read_file)
            return
        self._unused = open(os.devnull, "rb")  # noqa: SIM115  # standard output would become non-blocking
        StandardIO(self, stdout=self._unused.fileno())  # type: ignore[call-arg]  # typed as on Windows

    def settle(self) -> None:
        """What has been read is over."""

    def stop(self) -> None:
        """Read no more."""
        if self.transport is not None:
            self.transport.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        for event in self._lines.feed(data):
            self._fire(event)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._unused is not None:
            self._unused.close()
        for event in self._lines.end():
            self._fire(event)
        if not self._ended.called:
            self._ended.callback(None)

    def _read_file(self) -> None:
        if data := os.read(0, READ_SIZE):
            self.dataReceived(data)
            self._reactor.callLater(0, self._read_file)
        else:
            self.connectionLost()
