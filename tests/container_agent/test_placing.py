from __future__ import annotations

import os
import stat
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.provision import Placer
from ironcurtain.errors import Unavailable
from tests.audit.doubles import open_files, scratch
from tests.trees import ACCOUNT, nest, unprivileged


class PlacingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.before = open_files(alone=True)
        self.addCleanup(lambda: self.assertEqual(open_files(), self.before))
        self.scratch = scratch(self)
        self.top, self.outside = self.scratch / "top", self.scratch / "outside"
        self.top.mkdir()
        self.outside.mkdir()
        (self.outside / "file").write_text("theirs")
        self.uid = ACCOUNT if os.geteuid() == 0 else os.geteuid()

    def place(self, path: str, *, replace: bool = True, writable: bool = True) -> Path:
        Placer(self.top, self.uid, self.uid if os.geteuid() == 0 else os.getegid(), writable=writable).place(
            path, b"ours", replace=replace
        )
        return self.top / path

    def test_a_file_and_the_directories_above_it(self) -> None:
        file = self.place("a/b/c")
        self.assertEqual(file.read_text(), "ours")
        for path in (file, file.parent, file.parent.parent):
            self.assertEqual(path.lstat().st_uid, self.uid)
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.place("d", writable=False).stat().st_mode), 0o400)

    def test_what_is_there_is_replaced_or_kept(self) -> None:
        (self.top / "file").write_text("older")
        self.assertEqual(self.place("file", replace=False).read_text(), "older")
        self.assertEqual(self.place("file").read_text(), "ours")
        self.assertEqual(os.listdir(self.top), ["file"])

    def test_a_link_in_place_of_the_file(self) -> None:
        for replace in (True, False):
            (self.top / "file").unlink(missing_ok=True)
            (self.top / "file").symlink_to(self.outside / "file")
            file = self.place("file", replace=replace)
            self.assertFalse(file.is_symlink())
            self.assertEqual((self.outside / "file").read_text(), "theirs")

    def test_a_link_in_place_of_a_directory(self) -> None:
        (self.top / "a").symlink_to(self.outside)
        self.assertEqual(self.place("a/file").read_text(), "ours")
        self.assertEqual((self.outside / "file").read_text(), "theirs")

    def test_whatever_else_is_in_the_way(self) -> None:
        (self.top / "file" / "deep").mkdir(parents=True)
        (self.top / "file" / "deep" / "link").symlink_to(self.outside)
        os.mkfifo(self.top / "a")
        self.assertEqual(self.place("file").read_text(), "ours")
        self.assertEqual(self.place("a/b").read_text(), "ours")
        self.assertEqual((self.outside / "file").read_text(), "theirs")

    def test_what_is_in_the_way_cannot_stay_there(self) -> None:
        (self.top / "file").mkdir()
        closed = self.top / "closed" / "in"
        closed.mkdir(parents=True)
        (closed / "file").write_text("theirs")
        unprivileged(self, self.scratch)
        nest(self.top / "file")
        closed.chmod(0o500)
        closed.parent.chmod(0)
        self.assertEqual(self.place("file").read_text(), "ours")
        self.assertEqual(self.place("closed").read_text(), "ours")
        self.assertEqual(sorted(os.listdir(self.top)), ["closed", "file"])

    def test_the_top_must_be_a_directory(self) -> None:
        (self.scratch / "link").symlink_to(self.top)
        self.top = self.scratch / "link"
        self.assertRaises(Unavailable, self.place, "file")

    def test_paths_stay_below_the_top(self) -> None:
        for path in ("../file", "a/../../file", "/file", "", "a//b", "."):
            self.assertRaises(ValueError, self.place, path)
