from __future__ import annotations

import os
import stat
from pathlib import Path

from ironcurtain.errors import UsageError
from ironcurtain.project.export import Exported, destination, export
from tests.project.worlds import WorkspaceTestCase


class ExportTests(WorkspaceTestCase):
    def export(self) -> tuple[Path, Exported]:
        to = destination(self.top / "to", str(self.workspace.resolve()))
        return to, export(self.comparison(), to)

    def test_holes_stay_holes(self) -> None:
        self.begin()
        file = self.write("disk.img", "begin")
        os.truncate(file, 1 << 40)
        to, done = self.export()
        copy = (to / "disk.img").stat()
        self.assertEqual((copy.st_size, done.bytes, copy.st_blocks < 100), (1 << 40, 1 << 40, True))

    def test_files_directories_and_modes(self) -> None:
        self.begin()
        self.write("src/main.py", "print()\n", 0o755)
        self.write("private", "x", 0o600)
        (self.workspace / "empty").mkdir()
        to, done = self.export()
        self.assertEqual((to / "src" / "main.py").read_text(), "print()\n")
        self.assertEqual(stat.S_IMODE((to / "src" / "main.py").stat().st_mode) & 0o111, 0o111)
        self.assertEqual(stat.S_IMODE((to / "private").stat().st_mode), 0o600)
        self.assertTrue((to / "empty").is_dir())
        self.assertEqual((done.files, done.left_out), (2, []))

    def test_links_are_copied_as_links_and_only_those_that_stay_inside(self) -> None:
        (self.top / "secret").write_text("key")
        self.begin()
        self.write("a/file")
        for name, target in (("good", "a/file"), ("a/up", "../a/file"), ("out", "../secret"), ("root", "/etc/passwd")):
            (self.workspace / name).symlink_to(target)
        (self.workspace / "directory").symlink_to(self.top)
        to, done = self.export()
        self.assertEqual(os.readlink(to / "good"), "a/file")
        self.assertEqual(os.readlink(to / "a" / "up"), "../a/file")
        self.assertEqual({path for path, _ in done.left_out}, {"out", "root", "directory"})
        for name in ("out", "root", "directory"):
            self.assertFalse(os.path.lexists(to / name))

    def test_no_pipes_and_no_privileges(self) -> None:
        self.begin()
        os.mkfifo(self.workspace / "pipe")
        self.write("tool", mode=0o6755)
        to, done = self.export()
        self.assertEqual([path for path, _ in done.left_out], ["pipe"])
        self.assertEqual(stat.S_IMODE((to / "tool").stat().st_mode) & 0o7000, 0)

    def test_what_git_would_run_is_left_out_or_as_it_was(self) -> None:
        self.write(".git/config", "[core]\n\tbare = false\n")
        self.write(".git/hooks/pre-push", "#!/bin/sh\ntrue\n", 0o755)
        self.begin()
        self.write(".git/config", "[core]\n\tbare = false\n\tfsmonitor = ./evil\n")
        self.write(".git/hooks/pre-push", "#!/bin/sh\nevil\n", 0o755)
        self.write(".git/hooks/pre-commit", "#!/bin/sh\nevil\n", 0o755)
        self.write("sub/.git", "gitdir: /elsewhere\n")
        self.write(".git/refs/heads/main", "0" * 40)
        to, done = self.export()
        self.assertEqual((to / ".git" / "config").read_text(), "[core]\n\tbare = false\n")
        self.assertEqual((to / ".git" / "hooks" / "pre-push").read_text(), "#!/bin/sh\ntrue\n")
        self.assertTrue((to / ".git" / "refs" / "heads" / "main").exists())
        self.assertEqual({path for path, _ in done.left_out}, {".git/hooks/pre-commit", "sub/.git"})
        self.assertEqual(sorted(done.restored), [".git/config", ".git/hooks/pre-push"])
        self.assertNotIn("evil", "".join(p.read_text() for p in to.rglob("*") if p.is_file()))

    def test_a_directory_that_cannot_be_listed_is_reported(self) -> None:
        if os.geteuid() != 0:
            raise self.skipTest("only root can be somebody else")
        self.write("shut/.git/config")
        self.write("open/file")
        self.begin()
        (self.workspace / "shut" / ".git").chmod(0o311)
        (self.workspace / "seen").mkdir()
        self.write("seen/file")
        (self.workspace / "seen").chmod(0o644)
        for path in (self.top, self.workspace):
            path.chmod(0o777)
        comparison = self.comparison()
        to = destination(self.top / "to", str(self.workspace.resolve()))
        os.chown(to, 4711, 4711)
        os.seteuid(4711)
        self.addCleanup(os.seteuid, 0)
        self.assertEqual((comparison.changes(), comparison.unseen), ([], ["seen", "shut/.git"]))
        why = "cannot be listed"
        self.assertEqual(export(comparison, to).left_out, [("seen", why), ("shut/.git", why)])
        self.assertTrue((to / "open" / "file").exists())

    def test_git_s_objects_are_copied(self) -> None:
        self.write(".git/objects/ab/cdef", "object")
        self.begin()
        to, _ = self.export()
        self.assertEqual((to / ".git" / "objects" / "ab" / "cdef").read_text(), "object")

    def test_where_a_copy_may_go(self) -> None:
        real = str(self.workspace.resolve())
        self.write("a")
        (self.top / "full").mkdir()
        (self.top / "full" / "file").write_text("x")
        for wrong in (self.workspace / "sub", self.workspace, self.top, self.top / "full", self.top / "full" / "file"):
            self.assertRaises(UsageError, destination, wrong, real)
