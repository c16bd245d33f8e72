from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.files.removal import remove
from tests.audit.doubles import open_files, scratch
from tests.trees import nest, unprivileged


class RemovalTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.scratch = scratch(self)
        self.top, self.outside = self.scratch / "top", self.scratch / "outside"
        self.top.mkdir()
        self.outside.mkdir()
        (self.outside / "file").write_text("theirs")
        self.outside.chmod(0o755)
        unprivileged(self, self.scratch)
        self.before = open_files(alone=True)
        self.addCleanup(lambda: self.assertEqual(open_files(), self.before))

    def assertGone(self) -> None:
        self.assertEqual(os.listdir(self.scratch), ["outside"])
        self.assertEqual((self.outside / "file").read_text(), "theirs")
        self.assertEqual(self.outside.stat().st_mode & 0o777, 0o755)

    def test_files_links_and_directories(self) -> None:
        (self.top / "a" / "b").mkdir(parents=True)
        (self.top / "a" / "file").write_text("x")
        (self.top / "a" / "link").symlink_to(self.outside)
        (self.top / "link").symlink_to(self.outside / "file")
        os.mkfifo(self.top / "a" / "b" / "pipe")
        remove(self.top)
        self.assertGone()

    def test_directories_that_may_not_be_read_or_changed(self) -> None:
        for name, mode in (("a", 0o500), ("b", 0), ("c", 0o600)):
            (self.top / name / "in" / "deep").mkdir(parents=True)
            (self.top / name / "in" / "deep" / "file").write_text("x")
            for path in (self.top / name / "in" / "deep", self.top / name / "in", self.top / name):
                path.chmod(mode)
        self.top.chmod(0)
        remove(self.top)
        self.assertGone()

    def test_directories_deep_in_each_other(self) -> None:
        nest(self.top)
        remove(self.top)
        self.assertGone()

    def test_a_link(self) -> None:
        self.top.rmdir()
        self.top.symlink_to(self.outside)
        remove(self.top)
        self.assertGone()

    def test_nothing(self) -> None:
        self.top.rmdir()
        remove(self.top)
        remove(self.top / "below")
        self.assertGone()

    def test_what_cannot_be_put_aside(self) -> None:
        (self.top / "file").write_text("x")
        self.top.chmod(0o500)
        self.assertIn("Permission denied", str(self.assertRaises(Unavailable, remove, self.top / "file")))
        self.top.chmod(0o700)
