from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable

from ironcurtain.errors import NotFound
from ironcurtain.project.contents import ContentStore
from ironcurtain.project.snapshot import (
    Restoring,
    Snapshot,
    SnapshotHead,
    SnapshotKind,
    SnapshotLimits,
    Snapshots,
    SnapshotTaken,
)
from ironcurtain.project.tree import close, open_tree
from tests.project.worlds import WorkspaceTestCase

LIMITS = SnapshotLimits(10, 1000, 1_000_000)


class SnapshotCase(WorkspaceTestCase):
    """Write into ``self.workspace``, and take snapshots of it at times long after."""

    def setUp(self) -> None:
        super().setUp()
        self.where = self.top / "snapshots"
        self.snapshots = Snapshots(self.where)
        self.now = 0

    def take(
        self, turn: int = 1, limits: SnapshotLimits = LIMITS, stopped: Callable[[], bool] = lambda: False
    ) -> SnapshotTaken:
        """:returns: a snapshot at a time when all files have settled."""
        tree = open_tree(str(self.workspace.resolve()), stopped, ("hidden", "a/hidden"))
        try:
            now = self.now or 2**62
            return self.snapshots.take(tree, turn, SnapshotKind.TURN, ("hidden", "a/hidden"), limits, now)
        finally:
            close(tree)

    def reads(self) -> list[int]:
        """:returns: the descriptors of files whose contents are read from now on."""
        read: list[int] = []
        add = ContentStore.add

        def counted(store: ContentStore, source: int) -> str:
            read.append(source)
            return add(store, source)

        self.patch(ContentStore, "add", counted)
        return read

    def read(self, head: SnapshotHead) -> Snapshot:
        """:returns: a snapshot from disk."""
        return Snapshots(self.where).read(head)

    def stored(self) -> int:
        """:returns: the number of contents on disk, the lists too."""
        return len(list(self.where.glob("contents/*/*")))


class TakeTests(SnapshotCase):
    def test_it_has_all_files_with_modes_and_links_and_git_s_objects(self) -> None:
        self.write("src/run.sh", "#!/bin/sh\n", 0o755)
        self.write(".git/objects/ab/cd", b"\0object")
        self.write("b\udcff", "odd")
        (self.workspace / "link").symlink_to("src/run.sh")
        head = self.take().head
        snapshot = self.read(head)
        self.assertEqual(
            set(snapshot.entries), {"src", "src/run.sh", ".git", ".git/objects", ".git/objects/ab",
                                    ".git/objects/ab/cd", "link", "b\udcff"})  # fmt: skip
        self.assertEqual((head.files, head.size), (8, 20))
        self.assertEqual(snapshot.entries["src/run.sh"].mode, 0o755)
        self.assertEqual(snapshot.original(".git/objects/ab/cd"), b"\0object")
        self.assertEqual(snapshot.entries["link"].target, "src/run.sh")

    def test_equal_contents_and_unchanged_files_are_stored_once(self) -> None:
        self.write("a/one", "same")
        self.write("two", "same")
        self.take()
        self.assertEqual(self.stored(), 2)
        self.assertEqual(self.take(2).head.listing, self.take(3).head.listing)
        self.assertEqual((self.stored(), [head.turn for head in self.snapshots.heads()]), (2, [1, 2, 3]))

    def test_an_unchanged_file_is_not_read_again(self) -> None:
        file = self.write("file", "text")
        self.take()
        read = self.reads()
        self.take(2)
        self.assertEqual(read, [])
        file.write_text("other")
        self.assertEqual(self.read(self.take(3).head).original("file"), b"other")
        self.assertEqual(len(read), 1)

    def test_a_file_that_changed_right_before_is_read_again(self) -> None:
        """File systems count time in steps, so that it may have changed once more without other times."""
        file = self.write("file", "text")
        self.now = os.stat(file).st_ctime_ns
        self.take()
        read = self.reads()
        self.take(2)
        self.assertEqual(len(read), 1)

    def test_links_are_not_followed_and_protected_paths_left_out(self) -> None:
        secret = self.top / "secret"
        secret.mkdir()
        (secret / "key").write_text("the key")
        (self.workspace / "link").symlink_to(secret)
        self.write("hidden", "the key")
        self.write("a/hidden/deep", "the key")
        entries = self.read(self.take().head).entries
        self.assertEqual(set(entries), {"link", "a"})
        stored = b"".join(path.read_bytes() for path in self.where.rglob("*") if path.is_file())
        self.assertNotIn(b"the key", stored)

    def test_what_is_no_file_is_left_out_and_named(self) -> None:
        os.mkfifo(self.workspace / "pipe")
        self.write("file")
        taken = self.take()
        self.assertEqual(taken.left_out, (("pipe", "a socket, pipe or device"),))
        self.assertTrue(taken.head.listing)

    def test_large_files(self) -> None:
        content = os.urandom(1024 * 1024) * 2 + b"end"
        self.write("large", content)
        head = self.take(limits=SnapshotLimits(10, 10, 10_000_000)).head
        snapshot = self.read(head)
        with open(self.top / "copy", "w+b") as copy:
            snapshot.contents.copy(snapshot.entries["large"].digest, copy.fileno())
        self.assertEqual((self.top / "copy").read_bytes(), content)

    def test_everything_is_for_the_owner_alone(self) -> None:
        self.write("file")
        self.take()
        for path in (self.where, *self.where.rglob("*")):
            self.assertEqual(stat.S_IMODE(path.lstat().st_mode) & 0o077, 0, path)


class LimitTests(SnapshotCase):
    def test_too_many_files_or_bytes_are_a_failure_with_a_reason(self) -> None:
        self.write("a", "x" * 600)
        self.write("b", "x" * 600)
        for limits, why in (
            (SnapshotLimits(9, 1, 10_000), "the workspace has more than 1 files and directories"),
            (SnapshotLimits(9, 10, 1_000), "the files of the workspace have more than 0 MB"),
        ):
            head = self.take(limits=limits).head
            self.assertEqual((head.failed, head.listing), (why, ""))
            self.assertRaises(NotFound, self.read, head)
        self.assertEqual([head.failed != "" for head in self.snapshots.heads()], [True, True])
        self.assertEqual(self.stored(), 0)

    def test_a_cancelled_one_is_a_failure(self) -> None:
        self.write("a")
        self.assertEqual(self.take(stopped=lambda: True).head.failed, "it was cancelled")

    def test_only_the_last_are_kept_with_what_they_need(self) -> None:
        limits = SnapshotLimits(2, 10, 10_000)
        self.write("always", "always")
        for number in range(4):
            self.write("file", f"content {number}")
            self.take(number + 1, limits)
        heads = self.snapshots.heads()
        self.assertEqual([head.turn for head in heads], [3, 4])
        self.assertEqual([self.read(head).original("file") for head in heads], [b"content 2", b"content 3"])
        self.assertEqual(self.stored(), 5)

    def test_old_ones_go_when_they_keep_too_much(self) -> None:
        limits = SnapshotLimits(10, 10, 2_500)
        for number in range(4):
            self.write("file", f"{number}" * 1000)
            self.take(number + 1, limits)
        heads = self.snapshots.heads()
        self.assertIn([head.turn for head in heads], ([4], [3, 4]))
        self.assertEqual(self.read(heads[-1]).original("file"), b"3" * 1000)

    def test_what_an_interrupted_undo_needs_is_kept(self) -> None:
        limits = SnapshotLimits(2, 10, 10_000)
        self.take(1, limits)
        self.snapshots.begin_restoring(Restoring(number=1, kept=0))
        for turn in range(2, 6):
            self.take(turn, limits)
        self.assertIn(1, [head.number for head in self.snapshots.heads()])


KILLED = """
import os, signal, sys
from ironcurtain.project import contents, snapshot
from ironcurtain.project.tree import open_tree
left = [int(sys.argv[3])]
def kill():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
rename = os.rename
os.rename = lambda *a, **k: (kill(), rename(*a, **k), kill())[1]
limits = snapshot.SnapshotLimits(10, 1000, 1_000_000)
tree = open_tree(sys.argv[1])
snapshot.Snapshots(snapshot.Path(sys.argv[2])).take(tree, 2, snapshot.SnapshotKind.TURN, (), limits, 2**62)
print("done")
"""


class KilledTests(SnapshotCase):
    def test_a_torn_snapshot_is_ignored_and_removed(self) -> None:
        """A process is killed before and after each step by which a snapshot appears."""
        self.write("old", "old")
        first = self.take().head
        self.write("a", "new a")
        self.write("b", "new b")
        ended = set()
        for step in range(1, 12):
            words = [sys.executable, "-c", KILLED, str(self.workspace), str(self.where), str(step)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, -signal.SIGKILL), done.stderr)
            ended.add(done.returncode)
            for head in self.snapshots.heads():
                self.assertEqual(self.read(head).original("old"), b"old")
            self.assertEqual(self.read(first).original("old"), b"old")
            if done.returncode == 0:
                break
        self.assertEqual(ended, {0, -signal.SIGKILL})
        last = self.take(3).head
        self.assertEqual([path.name for path in self.where.rglob(".*")], [])
        self.assertEqual(self.read(last).original("b"), b"new b")
        self.assertFalse((self.where / "taking").exists())
