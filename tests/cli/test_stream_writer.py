"""Writing to a pipe whose reader takes its time."""

from __future__ import annotations

import os
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from ironcurtain.cli.stream_writer import FULL_SIZE, StreamWriter

reactor: Any = _reactor


class StreamWriterTests(TestCase):
    timeout = 120

    def setUp(self) -> None:
        self.reading, self.writing = os.pipe()
        self.addCleanup(os.close, self.writing)
        self.full: list[bool] = []
        self.failed: Deferred[OSError] = Deferred()
        self.writer = StreamWriter(reactor, self.writing, self.full.append, self.failed.callback)

    def read(self, size: int) -> bytes:
        """:returns: so many bytes."""
        read = b""
        while len(read) < size:
            read += os.read(self.reading, size - len(read))
        return read

    async def test_all_arrives_in_order_and_too_much_is_reported(self) -> None:
        self.addCleanup(os.close, self.reading)
        pieces = [b"%d\n" % number * 1000 for number in range(200)]
        for piece in pieces:
            self.writer.write(piece)
        whole = b"".join(pieces)
        self.assertGreater(len(whole), FULL_SIZE)
        self.assertEqual(self.full, [True])
        written = self.writer.written()
        self.assertEqual(await deferToThread(self.read, len(whole)), whole)
        await written
        self.assertEqual(self.full, [True, False])
        await self.writer.written()

    async def test_somebody_else_made_it_non_blocking(self) -> None:
        self.addCleanup(os.close, self.reading)
        os.set_blocking(self.writing, False)
        self.writer.write(b"x" * FULL_SIZE)
        self.assertEqual(len(await deferToThread(self.read, FULL_SIZE)), FULL_SIZE)
        await self.writer.written()
        self.assertFalse(self.failed.called)

    async def test_nobody_is_there(self) -> None:
        os.close(self.reading)
        self.writer.write(b"x" * 2 * FULL_SIZE)
        written = self.writer.written()
        self.assertIsInstance(await self.failed, BrokenPipeError)
        await written
        self.writer.write(b"more")
        await self.writer.written()
        self.assertEqual(self.full, [True, False])

    async def test_who_waits_may_give_up(self) -> None:
        self.addCleanup(os.close, self.reading)
        self.writer.write(b"x" * FULL_SIZE)
        written = self.writer.written()
        written.addErrback(lambda _: None)
        written.cancel()
        await deferToThread(self.read, FULL_SIZE)
        await self.writer.written()
