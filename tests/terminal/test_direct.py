"""Writing at once."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet import fdesc
from twisted.internet.abstract import FileDescriptor
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.direct import write_now


class Watched:
    """A reactor that notes who wants to write."""

    def __init__(self) -> None:
        self.writers: set[Any] = set()

    def addWriter(self, writer: Any) -> None:
        self.writers.add(writer)

    def removeWriter(self, writer: Any) -> None:
        self.writers.discard(writer)

    def removeReader(self, reader: Any) -> None:
        """Nobody reads."""


class Pipe(FileDescriptor):
    """The end of a pipe that is written to."""

    def __init__(self, descriptor: int) -> None:
        self.watched = Watched()
        super().__init__(self.watched)  # type: ignore[arg-type]
        self.connected, self._descriptor = 1, descriptor

    def writeSomeData(self, data: bytes) -> Any:
        return fdesc.writeToFD(self._descriptor, data)


class WritingTests(SynchronousTestCase):
    """To a pipe."""

    def setUp(self) -> None:
        self.end, writer = os.pipe()
        os.set_blocking(writer, False)
        self.pipe = Pipe(writer)
        self.addCleanup(os.close, writer)

    def read(self) -> bytes:
        return os.read(self.end, 1 << 20)

    def close(self) -> None:
        os.close(self.end)

    def test_it_is_there_and_nothing_is_watched(self) -> None:
        self.addCleanup(self.close)
        write_now(self.pipe, b"key")
        self.assertEqual((self.read(), self.pipe.watched.writers), (b"key", set()))

    def test_what_is_not_taken_follows_in_its_order(self) -> None:
        self.addCleanup(self.close)
        much = os.urandom(200_000)
        write_now(self.pipe, much)
        write_now(self.pipe, b"key")
        self.assertEqual(self.pipe.watched.writers, {self.pipe})
        seen = b""
        while self.pipe.watched.writers:
            seen += self.read()
            write_now(self.pipe, b"")
            self.pipe.doWrite()
        seen += self.read()
        self.assertEqual(seen, much + b"key")
        write_now(self.pipe, b"again")
        self.assertEqual(self.read(), b"again")

    def test_an_end_is_found_by_the_reactor(self) -> None:
        self.close()
        write_now(self.pipe, b"key")
        self.assertEqual(self.pipe.watched.writers, {self.pipe})
        self.assertIsInstance(self.pipe.doWrite(), ConnectionLost)

    def test_nothing_is_written_once_it_is_over(self) -> None:
        self.addCleanup(self.close)
        self.pipe.connectionLost(Failure(ConnectionLost()))
        write_now(self.pipe, b"key")
        os.set_blocking(self.end, False)
        self.assertRaises(BlockingIOError, self.read)
