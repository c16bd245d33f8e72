"""Directories that an agent closed to the account that undoes its work; root works as another one, which that stops."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import Any

from tests.project.test_restore import Look, look
from tests.project.worlds import WorkspaceTestCase

PROGRAM = """
import json, os, subprocess, sys
from contextlib import suppress
from pathlib import Path
from ironcurtain.errors import UsageError
from ironcurtain.project.snapshot import SnapshotKind, SnapshotLimits, Snapshots
from ironcurtain.project.tree import close, open_tree
from ironcurtain.project.undo import choose, restoration, undo
where, workspace, script = sys.argv[1:]
snapshots, limits = Snapshots(Path(where)), SnapshotLimits(10, 1000, 1_000_000)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
def take(kind):
    tree = open_tree(workspace)
    snapshots.take(tree, 1, kind, (), limits, 2**62)
    close(tree)
if script not in ("undo", "back"):
    take(SnapshotKind.TURN)
    subprocess.run(["sh", "-ec", script], cwd=workspace, check=True)
    with suppress(UsageError):
        take(SnapshotKind.END)
    sys.exit()
head = choose(snapshots, None, script == "back")
with restoration(snapshots, head) as found:
    shown = [change.path for change in found.changes]
done = undo(snapshots, head.number, limits, 2**62)
print(json.dumps([shown, done.restored.left, done.since]))
"""


class AccessTests(WorkspaceTestCase):
    def setUp(self) -> None:
        super().setUp()
        for path in ("a", "src/a", "src/deep/b", "closed/a"):
            self.write(path, "before")
        (self.workspace / "closed").chmod(0o555)

    def look(self) -> tuple[int, Look]:
        """:returns: the workspace, with its own permissions."""
        return stat.S_IMODE(self.workspace.stat().st_mode), look(self.workspace)

    def work(self, script: str) -> None:
        """:param script: what the agent does."""
        if os.geteuid() == 0:
            for path in (self.top, *self.top.rglob("*")):
                os.chown(path, 65534, 65534, follow_symlinks=False)
        self.run_program(script)

    def undo(self, word: str = "undo") -> list[list[Any]]:
        """:returns: what is shown beforehand; what was left, with reasons; what others have changed."""
        found: list[list[Any]] = json.loads(self.run_program(word))
        return found

    def run_program(self, word: str) -> str:
        done = self.done(word)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def done(self, word: str) -> subprocess.CompletedProcess[str]:
        """:returns: the program's end, and what it wrote."""
        words = [sys.executable, "-c", PROGRAM, str(self.top / "snapshots"), str(self.workspace), word]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def check(self, script: str) -> None:
        """An undo restores everything, permissions too, and so does the one that takes it back."""
        before = self.look()
        self.work(script)
        after = self.look()
        self.assertNotEqual(before, after)
        shown, left, since = self.undo()
        self.assertEqual((self.look(), left, since, bool(shown)), (before, [], [], True))
        _, left, since = self.undo("back")
        self.assertEqual((self.look(), left, since), (after, [], []))

    def test_workspace_that_cannot_be_written(self) -> None:
        self.check("echo bad >a; chmod 555 .")

    def test_workspace_that_cannot_be_listed_is_restored_once_it_can(self) -> None:
        before = self.look()
        self.work("echo bad >a; chmod 0 .")
        self.assertIn(f"access with: chmod u+rwx {self.workspace}", self.done("undo").stderr)
        self.workspace.chmod(0o700)
        self.assertEqual(self.undo()[1:], [[], []])
        self.assertEqual(self.look(), before)

    def test_directories_that_cannot_be_written(self) -> None:
        self.check("echo bad >src/a; rm src/deep/b; echo new >src/deep/c; mkdir -p src/d/e; chmod -R a-w src")

    def test_directory_that_was_opened_and_closed_again(self) -> None:
        self.check("chmod u+w closed; echo bad >closed/a; echo new >closed/b; chmod 555 closed")

    def test_directory_that_was_opened(self) -> None:
        self.check("chmod 755 closed; rm closed/a")

    def test_directory_that_was_removed(self) -> None:
        self.check("chmod 755 closed; rm -r closed")

    def test_directory_that_cannot_be_listed(self) -> None:
        self.check("echo bad >src/a; echo new >src/deep/c; chmod 000 src/deep src")

    def test_new_directories(self) -> None:
        self.check("mkdir -p new/below other; echo x >new/below/x; echo x >other/x; chmod -R a-w new; chmod 0 other")

    def test_file_in_the_place_of_a_directory(self) -> None:
        self.check("rm a; mkdir -p a/b; echo x >a/b/c; rm -r src; echo x >src; chmod 500 a/b a; chmod 555 .")

    def test_permissions_are_set_again_where_a_file_cannot_be_restored(self) -> None:
        self.work("chmod u+w closed; rm closed/a; mkfifo closed/a; rm a; chmod 555 closed; chmod 500 .")
        before = self.look()
        for content in self.top.glob("snapshots/contents/*/*"):
            if content.read_text() == "before":
                content.write_text("damaged")
        reason = "its content in the snapshot is damaged"
        self.assertEqual(self.undo()[1], [["a", reason], ["closed/a", reason]])
        self.assertEqual(self.look(), (0o755, before[1]))

    def test_link_to_a_closed_directory_is_not_followed(self) -> None:
        outside = self.top / "outside"
        outside.mkdir()
        outside.chmod(0o555)
        self.work("rm -r src; ln -s ../outside src; chmod 555 .")
        self.assertEqual(self.undo()[1:], [[], []])
        self.assertEqual((stat.S_IMODE(outside.stat().st_mode), os.listdir(outside)), (0o555, []))
        self.assertEqual((self.workspace / "src/a").read_text(), "before")
