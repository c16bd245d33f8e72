from __future__ import annotations

import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ironcurtain.errors import NotFound
from ironcurtain.project.patch import patch
from ironcurtain.project.restore import Restored
from ironcurtain.project.snapshot import SnapshotLimits
from ironcurtain.project.undo import choose, restoration, undo
from tests.project.test_snapshot import LIMITS, SnapshotCase

Look = dict[str, tuple[int, str | bytes]]


def look(top: Path) -> Look:
    """:returns: the mode and content of everything below a directory."""
    found: Look = {}
    for path in sorted(top.rglob("*")):
        mode = path.lstat().st_mode
        content: str | bytes = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        found[str(path.relative_to(top))] = (mode, content)
    return found


class RestoreCase(SnapshotCase):
    def undo(self) -> Restored:
        """:returns: what the undo of the last turn did."""
        return undo(self.snapshots, choose(self.snapshots, None).number, LIMITS, 2**62).restored

    def changes(self) -> dict[str, str]:
        """:returns: what an undo would restore, as people see it."""
        with restoration(self.snapshots, choose(self.snapshots, None)) as found:
            return {change.path: change.what for change in found.shown}


class RestoreTests(RestoreCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("src/main.py", "print()\n", 0o755)
        self.write("src/deep/er/x", "x")
        self.write(".git/HEAD", "ref: refs/heads/main\n")
        (self.workspace / "link").symlink_to("src/main.py")
        self.earlier = look(self.workspace)

    def check(self) -> None:
        done = self.undo()
        self.assertEqual((look(self.workspace), done.left), (self.earlier, []))

    def test_holes_stay_holes_in_snapshots_and_back(self) -> None:
        file = self.write("disk.img", "begin")
        os.truncate(file, 5 << 20)
        content, limits = file.read_bytes(), SnapshotLimits(10, 1000, 1 << 30)
        self.take(limits=limits)
        stored = max(self.where.glob("contents/*/*"), key=lambda path: path.stat().st_size).stat()
        file.write_text("changed")
        undo(self.snapshots, choose(self.snapshots, None).number, limits, 2**62)
        for found in (stored, file.stat()):
            self.assertEqual((found.st_size, found.st_blocks < 100), (5 << 20, True))
        self.assertEqual(file.read_bytes(), content)

    def test_nothing_changed(self) -> None:
        self.take()
        self.assertEqual((self.changes(), self.undo()), ({}, Restored()))

    def test_changed_added_removed_and_modes(self) -> None:
        self.take()
        (self.workspace / "src/main.py").write_text("import os\n")
        self.write(".git/hooks/pre-commit", "evil", 0o755)
        self.write("src/deep/er/x", "x", 0o600)
        (self.workspace / "link").unlink()
        (self.workspace / "src/deep").chmod(0o700)
        self.assertEqual(
            self.changes(),
            {"src/main.py": "changed", ".git/hooks/pre-commit": "added", "src/deep/er/x": "mode", "link": "removed"},
        )
        self.check()

    def test_kinds_that_changed(self) -> None:
        self.take()
        shutil.rmtree(self.workspace / "src/deep")
        self.write("src/deep", "a file now")
        (self.workspace / "src/main.py").unlink()
        self.write("src/main.py/below/file", "a directory now")
        (self.workspace / "link").unlink()
        os.mkfifo(self.workspace / "link")
        self.check()

    def test_a_planted_link_is_removed_and_not_followed(self) -> None:
        outside = self.top / "outside"
        outside.mkdir()
        (outside / "main.py").write_text("not the agent's")
        self.take()
        shutil.rmtree(self.workspace / "src")
        (self.workspace / "src").symlink_to(outside)
        self.check()
        self.assertEqual(look(outside), {"main.py": ((outside / "main.py").stat().st_mode, b"not the agent's")})

    def test_a_link_that_is_planted_meanwhile_is_not_followed(self) -> None:
        outside = self.top / "outside"
        outside.mkdir()
        (outside / "main.py").write_text("not the agent's")
        self.take()
        (self.workspace / "src/main.py").write_text("import os\n")
        with restoration(self.snapshots, choose(self.snapshots, None)) as found:
            shutil.rmtree(self.workspace / "src")
            (self.workspace / "src").symlink_to(outside)
            done = found.restore()
        self.assertEqual([path for path, _ in done.left], ["src/main.py"])
        self.assertEqual((outside / "main.py").read_text(), "not the agent's")

    def test_what_is_hidden_stays(self) -> None:
        self.take()
        self.write("hidden", "the key")
        self.write("a/hidden", "the key")
        done = self.undo()
        self.assertEqual((self.workspace / "a/hidden").read_text(), "the key")
        self.assertEqual((self.workspace / "hidden").read_text(), "the key")
        self.assertEqual([path for path, _ in done.left], ["a"])

    def test_a_damaged_content_is_not_restored(self) -> None:
        head = self.take().head
        digest = self.read(head).entries["src/main.py"].digest
        (self.where / "contents" / digest[:2] / digest).write_text("evil")
        (self.workspace / "src/main.py").write_text("import os\n")
        self.assertEqual(self.undo().left, [("src/main.py", "its content in the snapshot is damaged")])
        self.assertEqual((self.workspace / "src/main.py").read_text(), "import os\n")

    def test_times_are_restored_so_that_builds_see_no_change(self) -> None:
        os.utime(self.workspace / "src/main.py", (1e9, 1e9))
        self.take()
        (self.workspace / "src/main.py").write_text("import os\n")
        self.undo()
        self.assertEqual((self.workspace / "src/main.py").stat().st_mtime, 1e9)

    def test_a_change_that_hides_its_time_is_found(self) -> None:
        self.take()
        file = self.workspace / "src/main.py"
        times = file.stat()
        file.write_text("prinT()\n")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.check()

    def test_the_difference_is_shown_as_a_patch(self) -> None:
        self.take()
        (self.workspace / "src/main.py").write_text("import os\n")
        with restoration(self.snapshots, choose(self.snapshots, None)) as found:
            (change,) = found.shown
            text = patch(change, found.comparison.before, found.comparison.after)
        self.assertIn("-print()\n+import os\n", text)


class TakenBackTests(RestoreCase):
    def contents(self) -> dict[str, str]:
        """:returns: the files."""
        return {path: data.decode() for path, (_, data) in look(self.workspace).items() if isinstance(data, bytes)}

    def test_an_undo_is_undone(self) -> None:
        self.write("file", "before")
        self.take()
        self.write("file", "after")
        self.undo()
        self.assertEqual((self.workspace / "file").read_text(), "before")
        undo(self.snapshots, choose(self.snapshots, None, back=True).number, LIMITS, 2**62)
        self.assertEqual((self.workspace / "file").read_text(), "after")

    def test_an_interrupted_one_continues_and_keeps_what_was_before_it(self) -> None:
        self.write("a", "before")
        self.write("b", "before")
        self.take()
        self.take(2)
        self.write("a", "after")
        self.write("b", "after")
        first = choose(self.snapshots, 1)
        kept = undo(self.snapshots, first.number, LIMITS, 2**62, stopped=lambda: self.contents()["a"] == "before").kept
        self.write(".ironcurtain-undo-0", "a draft")
        chosen = choose(self.snapshots, None)
        self.assertEqual(chosen.number, first.number)
        self.assertEqual(undo(self.snapshots, chosen.number, LIMITS, 2**62).kept, kept)
        self.assertEqual(
            {path: data for path, (_, data) in look(self.workspace).items()}, {"a": b"before", "b": b"before"}
        )
        self.assertIsNone(self.snapshots.interrupted())

    def test_a_stopped_one_ends_between_two_paths_and_continues(self) -> None:
        for name in "abc":
            self.write(name, "before")
        self.take()
        for name in "abc":
            self.write(name, "after")
        first = undo(self.snapshots, 1, LIMITS, 2**62, stopped=lambda: self.contents()["b"] == "before")
        self.assertEqual((first.interrupted, first.restored), (True, Restored(2)))
        self.assertEqual(self.contents(), {"a": "before", "b": "before", "c": "after"})
        second = undo(self.snapshots, choose(self.snapshots, None).number, LIMITS, 2**62)
        self.assertEqual((second.interrupted, second.restored, second.kept), (False, Restored(1), first.kept))
        undo(self.snapshots, choose(self.snapshots, None, back=True).number, LIMITS, 2**62)
        self.assertEqual(self.contents(), dict.fromkeys("abc", "after"))

    def test_one_that_is_stopped_before_it_began_changes_nothing(self) -> None:
        self.write("a/b", "before")
        self.take()
        self.write("a/b", "after")
        (self.workspace / "a").chmod(0o700)
        for stop in itertools.count(1):
            calls = itertools.repeat(False, stop)
            stopped = undo(self.snapshots, 1, LIMITS, 2**62, stopped=partial(next, calls, True))
            if stopped.restored != Restored():
                break
            self.assertEqual((stopped.interrupted, self.contents()), (True, {"a/b": "after"}))
            self.assertEqual((self.workspace / "a").stat().st_mode & 0o777, 0o700)
        self.assertGreater(stop, 3)

    def test_a_workspace_that_became_too_large_is_restored_all_the_same(self) -> None:
        self.write("file", "before")
        self.take()
        self.write("file", "x" * 2000)
        done = undo(self.snapshots, 1, SnapshotLimits(10, 10, 1000), 2**62)
        self.assertEqual((done.kept, done.not_kept), (0, "the files of the workspace have more than 0 MB"))
        self.assertEqual((self.workspace / "file").read_text(), "before")

    def test_turns_without_a_snapshot(self) -> None:
        self.assertRaises(NotFound, choose, self.snapshots, None)
        self.take(1)
        self.write("file")
        self.take(2, SnapshotLimits(10, 0, 0))
        error = self.assertRaises(NotFound, choose, self.snapshots, None)
        self.assertIn("before turn 2: the workspace has more than 0 files", str(error))
        self.assertIn("before turn 1", str(error))
        self.assertRaises(NotFound, choose, self.snapshots, 3)
        self.assertRaises(NotFound, choose, self.snapshots, None, True)


KILLED = """
import os, signal, sys
from pathlib import Path
from ironcurtain.project import undo
from ironcurtain.project.snapshot import SnapshotLimits, Snapshots
left = [int(sys.argv[2])]
def kill():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
rename = os.rename
os.rename = lambda *a, **k: (kill(), rename(*a, **k), kill())[1]
undo.undo(Snapshots(Path(sys.argv[1])), 1, SnapshotLimits(10, 1000, 1_000_000), 2**62)
"""


class KilledUndoTests(RestoreCase):
    def test_an_undo_that_is_killed_is_continued(self) -> None:
        """A process is killed before and after each step by which the undo and its files appear."""
        for name in "abc":
            self.write(name, "before")
        self.take()
        before, ended = look(self.workspace), set()
        for step in range(1, 40):
            shutil.rmtree(self.where)
            self.assertEqual(look(self.workspace), before)
            self.take()
            for name in "abcd":
                self.write(name, "after")
            words = [sys.executable, "-c", KILLED, str(self.where), str(step)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertIn(done.returncode, (0, -signal.SIGKILL), done.stderr)
            ended.add(done.returncode)
            undone = undo(self.snapshots, choose(self.snapshots, 1).number, LIMITS, 2**62)
            self.assertEqual((undone.restored.left, look(self.workspace)), ([], before))
            if done.returncode == 0:
                break
            back = choose(self.snapshots, None, back=True)
            self.assertEqual({self.read(back).original(name) for name in "abcd"}, {b"after"})
        self.assertEqual(ended, {0, -signal.SIGKILL})


NAMES = st.sampled_from(["a", "b", "a/c", "a/d", "b/c", "a/c/e"])
STEPS = st.lists(st.tuples(NAMES, st.sampled_from(["file", "other", "exec", "link", "directory", "gone"])), max_size=8)


class AnyChangeTests(RestoreCase):
    @settings(max_examples=40, deadline=None)
    @given(STEPS, STEPS)
    def test_whatever_changed_is_restored(self, first: list[tuple[str, str]], then: list[tuple[str, str]]) -> None:
        shutil.rmtree(self.workspace)
        shutil.rmtree(self.where, ignore_errors=True)
        self.workspace.mkdir()
        self.apply(first)
        before = look(self.workspace)
        self.take()
        self.apply(then)
        self.assertEqual((self.undo().left, look(self.workspace)), ([], before))

    def apply(self, steps: list[tuple[str, str]]) -> None:
        for name, kind in steps:
            path = self.workspace / name
            for above in reversed(path.relative_to(self.workspace).parents):
                place = self.workspace / above
                if place.is_symlink() or place.is_file():
                    place.unlink()
                place.mkdir(exist_ok=True)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            if kind == "link":
                path.symlink_to("elsewhere")
            elif kind == "directory":
                path.mkdir()
            elif kind != "gone":
                path.write_text(kind)
                path.chmod(0o755 if kind == "exec" else 0o644)
                self.assertTrue(stat.S_ISREG(path.stat().st_mode))
