"""Copies of files with holes."""

from __future__ import annotations

import os
import tempfile

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.files import sparse

parts = st.lists(st.tuples(st.booleans(), st.integers(1, 3 * 4096)), max_size=6)


class SparseTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.source, self.target = tempfile.TemporaryFile(buffering=0), tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self.addCleanup(self.source.close)
        self.addCleanup(self.target.close)

    def copied(self) -> tuple[int, bytes]:
        """:returns: the size, and what the callback was given."""
        seen = bytearray()
        return sparse.copy(self.source.fileno(), self.target.fileno(), seen.extend), bytes(seen)

    @given(parts)
    def test_copy_has_the_same_content(self, parts: list[tuple[bool, int]]) -> None:
        for file in (self.source, self.target):
            file.truncate(0)
        size = 0
        for hole, length in parts:
            if not hole:
                os.pwrite(self.source.fileno(), b"x" * length, size)
            size += length
        self.source.truncate(size)
        content = os.pread(self.source.fileno(), size, 0)
        self.assertEqual(self.copied(), (size, content))
        self.assertEqual(os.pread(self.target.fileno(), size + 1, 0), content)
        seen = bytearray()
        sparse.read(self.source.fileno(), seen.extend)
        self.assertEqual(bytes(seen), content)

    def test_copy_of_a_file_with_a_hole_has_one(self) -> None:
        os.pwrite(self.source.fileno(), b"end", 64 * sparse.BLOCK)
        self.assertEqual(self.copied()[0], 64 * sparse.BLOCK + 3)
        was, is_now = os.fstat(self.source.fileno()), os.fstat(self.target.fileno())
        self.assertEqual((is_now.st_size, is_now.st_blocks <= was.st_blocks + 16), (was.st_size, True))

    def test_hole_of_any_size_takes_no_time(self) -> None:
        self.source.truncate(1 << 42)
        os.pwrite(self.source.fileno(), b"end", (1 << 43) - 3)
        self.assertEqual(sparse.copy(self.source.fileno(), self.target.fileno()), 1 << 43)
        self.assertEqual(os.pread(self.target.fileno(), 4, (1 << 43) - 3), b"end")

    def test_file_that_is_cut_off_meanwhile(self) -> None:
        os.pwrite(self.source.fileno(), b"x" * 3 * sparse.BLOCK, 0)

        def cut(data: memoryview) -> None:
            self.source.truncate(sparse.BLOCK)

        self.assertEqual(sparse.copy(self.source.fileno(), self.target.fileno(), cut), sparse.BLOCK)
        self.assertEqual(os.fstat(self.target.fileno()).st_size, sparse.BLOCK)
