from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.files.sizes import size_of
from tests.audit.doubles import scratch


class SizeTests(SynchronousTestCase):
    def test_files_below_are_counted_and_links_are_not_followed(self) -> None:
        top, outside = scratch(self), scratch(self)
        (outside / "large").write_bytes(b"x" * 100_000)
        (top / "a" / "b").mkdir(parents=True)
        (top / "a" / "b" / "file").write_bytes(b"x" * 5000)
        before = size_of(top)
        self.assertGreaterEqual(before, 5000)
        (top / "a" / "link").symlink_to(outside)
        (top / "a" / "file-link").symlink_to(outside / "large")
        self.assertLess(size_of(top), before + 1000)
        self.assertLess(size_of(top / "a" / "link"), 1000)
        self.assertEqual((size_of(outside / "large"), size_of(top / "none")), (100_000, 0))

    def test_a_deep_tree_and_one_without_permissions(self) -> None:
        top = scratch(self)
        deep = os.open(top, os.O_RDONLY)
        for _ in range(400):
            os.mkdir("d" * 10, dir_fd=deep)
            below = os.open("d" * 10, os.O_RDONLY, dir_fd=deep)
            os.close(deep)
            deep = below
        os.close(deep)
        (top / "file").write_bytes(b"x" * 5000)
        self.assertGreaterEqual(size_of(top), 5000)
        os.chmod(top / "dddddddddd", 0)
        self.assertGreaterEqual(size_of(top), 5000)
        os.chmod(top / "dddddddddd", 0o700)
