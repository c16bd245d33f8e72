"""What is written at once and what is queued come in order."""

from __future__ import annotations

import fcntl
import os
import sys

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import fdesc
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.terminal.direct import DirectDescriptor

SIZE = 4096
"""Of a pipe's buffer."""


class PipeEnd(DirectDescriptor):
    """The writing end of a small pipe."""

    def __init__(self) -> None:
        self.memory = MemoryReactor()
        super().__init__(self.memory)
        self.other, self._write = os.pipe()
        if sys.platform != "linux":
            raise SkipTest("only Linux has small pipes")
        fcntl.fcntl(self._write, fcntl.F_SETPIPE_SZ, SIZE)
        for end in (self.other, self._write):
            fdesc.setNonBlocking(end)
        self.connected = 1

    @property
    def waits(self) -> bool:
        """Whether the reactor is to say when more can be written."""
        return self in self.memory.getWriters()

    def fileno(self) -> int:
        return self._write

    def writeSomeData(self, data: bytes) -> int | BaseException:
        written: int | BaseException = fdesc.writeToFD(self._write, data)
        return written

    def read(self) -> bytes:
        """:returns: all that has come."""
        try:
            return os.read(self.other, 1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends."""
        os.close(self.other)
        os.close(self._write)


class DirectTests(SynchronousTestCase):
    """Over a pipe."""

    def setUp(self) -> None:
        self.end = PipeEnd()
        self.addCleanup(self.end.close)

    def test_what_fits_is_written_at_once(self) -> None:
        self.end.write(b"one")
        self.end.write(b"")
        self.assertEqual((self.end.read(), self.end.waits), (b"one", False))

    def test_the_rest_is_queued_and_what_follows_waits_for_it(self) -> None:
        data = bytes(range(256)) * 20
        self.end.write(data)
        self.end.write(b"after")
        first = self.end.read()
        self.assertEqual((len(first), self.end.waits), (SIZE, True))
        self.end.write(b"late")  # although there is room again
        self.end.doWrite()
        self.assertEqual((first + self.end.read(), self.end.waits), (data + b"afterlate", False))

    def test_an_end_is_noticed_by_the_reactor(self) -> None:
        os.close(self.end.other)
        self.end.write(b"to nobody")
        self.assertTrue(self.end.waits)
        self.assertIsInstance(self.end.doWrite(), Exception)
        self.end.other = os.dup(self.end.fileno())  # to be closed

    @given(st.lists(st.one_of(st.binary(max_size=3 * SIZE), st.sampled_from(("read", "turn"))), max_size=30))
    def test_any_order(self, steps: list[bytes | str]) -> None:
        end, written, seen = PipeEnd(), b"", b""
        for step in steps:
            if isinstance(step, bytes):
                end.write(step)
                written += step
            elif step == "read":
                seen += end.read()
            elif end.waits:
                end.doWrite()
        while end.waits:
            seen += end.read()
            end.doWrite()
        self.assertEqual(seen + end.read(), written)
        end.close()
