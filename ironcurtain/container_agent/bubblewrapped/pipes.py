"""The pipes of a program that runs in a sandbox and is no child of this process."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet import fdesc
from twisted.internet.abstract import FileDescriptor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.container.execution import Sink
from ironcurtain.terminal.direct import DirectDescriptor

PIECE_SIZE = 64 * 1024

LAST_PIECES = 32
"""Most pieces that are read after a program's end: twice as much as a pipe can hold."""


@implementer(IReadDescriptor)
class PipeReader:
    """
    Reads output, and waits while its sink does.

    :param descriptor: the reading end; closed at the end.
    :ivar done: fires once the output has ended, or was read up to now after :meth:`finish`.
    """

    def __init__(self, reactor: IReactorFDSet, descriptor: int, sink: Sink) -> None:
        self._reactor, self._descriptor, self._sink = reactor, descriptor, sink
        self._finishing = self._waiting = False
        self._pieces_left = LAST_PIECES
        self.done: Deferred[None] = Deferred()
        fdesc.setNonBlocking(descriptor)
        reactor.addReader(self)

    def finish(self) -> None:
        """The program has ended: read what is there. What it left running may still write, which is not waited for."""
        self._finishing = True
        while not self._waiting and not self.done.called:
            self.doRead()

    def fileno(self) -> int:
        """For the reactor."""
        return self._descriptor

    def logPrefix(self) -> str:
        """For the reactor."""
        return "pipe"

    def doRead(self) -> None:
        """For the reactor: there is output."""
        try:
            data = os.read(self._descriptor, PIECE_SIZE) if self._pieces_left else b""
        except BlockingIOError:
            if self._finishing:
                self._close()
            return
        except OSError:
            data = b""
        self._pieces_left -= self._finishing
        if not data:
            self._close()
        elif (taken := self._sink(data)) is not None and not taken.called:
            self._waiting = True
            self._reactor.removeReader(self)
            taken.addBoth(self._resume)

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: it stops."""
        self._close()

    def _resume(self, _: object) -> None:
        self._waiting = False
        if self.done.called:
            return
        self._reactor.addReader(self)
        if self._finishing:
            self.finish()

    def _close(self) -> None:
        if not self.done.called:
            self._reactor.removeReader(self)
            os.close(self._descriptor)
            self.done.callback(None)


class PipeWriter(DirectDescriptor):
    """
    Writes input. What cannot be written any more is dropped.

    :param descriptor: the writing end; closed by ``loseConnection`` once all is written, or when nobody reads it.
    """

    def __init__(self, reactor: Any, descriptor: int) -> None:
        super().__init__(reactor)
        self._descriptor = descriptor
        fdesc.setNonBlocking(descriptor)
        self.connected = 1

    def fileno(self) -> int:
        """For the reactor."""
        return self._descriptor

    def writeSomeData(self, data: bytes) -> Any:
        """For the transport's buffer."""
        return fdesc.writeToFD(self._descriptor, data)

    def connectionLost(self, reason: Failure) -> None:
        """For the reactor: it is closed."""
        if self.connected:
            FileDescriptor.connectionLost(self, reason)
            os.close(self._descriptor)
