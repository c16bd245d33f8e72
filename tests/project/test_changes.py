from __future__ import annotations

import os
import re
import shutil
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from ironcurtain.project.manifest import KEPT_FILE, read_manifest
from ironcurtain.project.patch import is_refused, patch
from ironcurtain.project.tree import Tree
from tests.project.worlds import WorkspaceTestCase


class ChangesTests(WorkspaceTestCase):
    def test_nothing_changed(self) -> None:
        self.write("a/b")
        self.begin()
        self.assertEqual((self.changed(), self.as_patch()), ({}, ""))

    def test_what_changed(self) -> None:
        for name in ("stays", "grows", "goes", "mode", "dir/file"):
            self.write(name)
        self.begin()
        self.write("grows", "x\ny\n")
        self.write("new")
        (self.workspace / "goes").unlink()
        (self.workspace / "mode").chmod(0o755)
        shutil.rmtree(self.workspace / "dir")
        expected = {"grows": "changed", "new": "added", "goes": "removed", "mode": "mode", "dir/file": "removed"}
        self.assertEqual(self.changed(), expected)

    def test_a_file_that_was_written_again_the_same_is_no_change(self) -> None:
        self.write("a", "same")
        self.begin()
        self.write("a", "same")
        self.assertEqual(self.changed(), {})

    def test_setting_the_time_back_hides_nothing(self) -> None:
        """Programs can set the time of the contents, but not the time of the change."""
        file = self.write("a", "one")
        times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
        self.begin()
        with file.open("r+") as out:
            out.write("two")
        os.utime(file, ns=times)
        self.assertEqual(self.changed(), {"a": "changed"})

    def test_a_file_that_became_a_link_or_a_directory(self) -> None:
        self.write("a", "text\n")
        self.write("b", "text\n")
        self.begin()
        (self.workspace / "a").unlink()
        (self.workspace / "a").symlink_to("b")
        (self.workspace / "b").unlink()
        self.write("b/c")
        self.assertEqual(self.changed(), {"a": "changed", "b": "removed", "b/c": "added"})
        self.assertIn("new file mode 120000\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+b\n\\ No newline", self.as_patch())

    def test_nothing_is_said_of_what_was_not_listed(self) -> None:
        self.write(".git/objects/ab/cd")
        self.begin()
        self.write(".git/objects/ef/01")
        comparison = self.comparison()
        self.assertEqual(comparison.changes(), [])
        self.assertEqual(comparison.uncovered, [".git/objects/ab", ".git/objects/ef"])

    def test_only_git_s_own_objects_may_stay_unseen(self) -> None:
        self.write(".git/lfs/x")
        self.write("evil.git/objects/x")
        self.begin()
        comparison = self.comparison()
        self.patch(Tree.entries, "__defaults__", (4,))
        comparison.changes()
        self.assertEqual(comparison.unseen, ["evil.git/objects"])

    def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(self) -> None:
        self.write("a")
        self.begin()
        (self.workspace / "a").unlink()
        os.mkfifo(self.workspace / "a")
        self.assertEqual(self.changed(), {"a": "changed"})
        self.assertIn("Special file", self.as_patch())


class PatchTests(WorkspaceTestCase):
    """What we print makes the new workspace of the old one, says git."""

    def git_applies(self) -> None:
        copy = self.top / "copy"
        shutil.copytree(self.old, copy, symlinks=True)
        text = self.as_patch(binary=True).encode("utf-8", "surrogateescape")
        done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=copy, input=text, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""), text)
        self.assertEqual(self.contents(copy), self.contents(self.workspace))

    def contents(self, top: os.PathLike[str]) -> dict[str, tuple[bool, bytes]]:
        found = {}
        for where, _, names in os.walk(top):
            for name in names:
                path = os.path.join(where, name)
                if os.path.islink(path):
                    found[os.path.relpath(path, top)] = (False, os.fsencode(os.readlink(path)))
                else:
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, top)] = (bool(os.stat(path).st_mode & 0o100), file.read())
        return found

    def start(self) -> None:
        self.begin()
        self.old = self.top / "old"
        shutil.copytree(self.workspace, self.old, symlinks=True)

    def test_every_sort_of_change(self) -> None:
        for name in ("grows", "goes", "mode", "with space", "caf\u00e9", 'quo"te\ttab'):
            self.write(name, "one\ntwo\n")
        self.write("no end", "one")
        self.write("becomes", "text\n")
        (self.workspace / "link").symlink_to("grows")
        self.start()
        for name in ("grows", "with space", "caf\u00e9", 'quo"te\ttab', "no end"):
            self.write(name, "one\nthree")
        self.write("new/er", "fresh\x0c\x85\u2028line\n")
        self.write("empty", "")
        self.write("program", "#!/bin/sh\n", 0o755)
        (self.workspace / "goes").unlink()
        (self.workspace / "mode").chmod(0o755)
        (self.workspace / "link").unlink()
        (self.workspace / "link").symlink_to("new/er")
        (self.workspace / "becomes").unlink()
        (self.workspace / "becomes").symlink_to("grows")
        self.git_applies()

    def test_binary_files_among_others(self) -> None:
        for size in (1, 51, 52, 53, 104, 5000):
            with self.subTest(size=size):
                for path in ("old", "copy"):
                    shutil.rmtree(self.top / path, ignore_errors=True)
                self.write("changed.png", b"\0" + bytes(range(256)) * (size // 256 + 1))
                self.write("goes.png", b"\0" * size)
                self.write("empty", b"")
                self.write("mode.png", b"\0a", 0o644)
                self.write("becomes", b"\0a")
                self.write("z.txt", b"one\n")
                self.start()
                self.write("changed.png", b"\0" + os.urandom(size))
                self.write("new.png", os.urandom(size) + b"\0")
                self.write("empty", b"\0")
                self.write("mode.png", b"\0b", 0o755)
                (self.workspace / "goes.png").unlink()
                (self.workspace / "becomes").unlink()
                (self.workspace / "becomes").symlink_to("z.txt")
                self.write("z.txt", b"two\n")
                self.git_applies()
                (self.workspace / "becomes").unlink()
                (self.workspace / "new.png").unlink()

    def test_what_no_patch_can_express_is_passed_over(self) -> None:
        large = b"x" * (KEPT_FILE + 1)
        for path in ("a-large", "large goes"):
            self.write(path, large)
        self.write("z.txt", b"one\n")
        self.start()
        self.write("a-large", large + b"x")
        self.write("b-large", large)
        (self.workspace / "large goes").unlink()
        os.mkfifo(self.workspace / "c-pipe")
        self.write("z.txt", b"two\n")
        copy = self.top / "copy"
        shutil.copytree(self.old, copy)
        text = self.as_patch(binary=True).encode()
        subprocess.run(["git", "apply", "-"], cwd=copy, input=text, check=True)
        self.assertEqual((copy / "z.txt").read_bytes(), b"two\n")
        self.assertEqual(sorted(os.listdir(copy)), ["a-large", "large goes", "z.txt"])
        for line in (b"Binary files a/a-large and b/a-large differ\n", b"Special file b/c-pipe (FIFO"):
            self.assertIn(line, text)

    def test_special_rights_are_no_mode_of_git_s(self) -> None:
        self.write("gets", "#!/bin/sh\n", 0o755)
        for name in ("mine", "program", "z.txt"):
            self.write(name, "one\n")
        self.start()
        for path, mode in (("gets", 0o4755), ("new", 0o6755), ("sticky", 0o1644)):
            self.write(path, "#!/bin/sh\n")
            (self.workspace / path).chmod(mode)
        (self.workspace / "mine").chmod(0o600)
        (self.workspace / "program").chmod(0o755)
        self.write("z.txt", "two\n")
        self.git_applies()
        text = self.as_patch()
        self.assertEqual(set(re.findall("mode (100[0-9]+)", text)), {"100755", "100644"})
        for line in ("b/gets: 4755\n", "b/mine: 0600\n", "b/new: 6755\n", "b/sticky: 1644\n"):
            self.assertIn(f"Rights of {line}", text)

    def test_names_that_git_refuses(self) -> None:
        names = (
            *(".git/config", "sub/.git", ".GIT/x", ".Git /x", ".git.", "git~1/x", ".git:a", ".git\\x", ".gitmodules"),
            *(".gitignore", "git~2", ".gitx", ".git~", "a.git", "gitmodules~1", "x\\.git", ".gitattributes"),
        )
        self.begin()
        for number, name in enumerate(names):
            path = self.workspace / f"d{number}" / name
            path.parent.mkdir(parents=True)
            path.symlink_to("target")
        for change in self.comparison().changes():
            text = patch(change, lambda change: b"", lambda change: b"target")
            done = subprocess.run(["git", "apply", "--check", "-"], cwd=self.top, input=text.encode(), check=False)
            self.assertEqual(is_refused(change), done.returncode != 0, change.path)

    def test_binary_files_are_only_said_to_differ(self) -> None:
        self.write("a", b"\0one")
        self.begin()
        self.write("a", b"\0two")
        self.assertIn("Binary files a/a and b/a differ\n", self.as_patch())

    @settings(max_examples=30, deadline=None)
    @given(
        *(st.lists(st.sampled_from(["a\n", "b\n", "\r\n", "\x0b\n", "\xe9\n", "\n", "end"]), max_size=8) for _ in "ab")
    )
    def test_any_text(self, one: list[str], other: list[str]) -> None:
        for path in ("old", "copy"):
            shutil.rmtree(self.top / path, ignore_errors=True)
        self.write("file", "".join(one).encode("latin-1"))
        self.start()
        self.write("file", "".join(other).encode("latin-1"))
        if self.changed():
            self.git_applies()

    def test_what_was_kept_is_what_was_there(self) -> None:
        self.write("a", "\r\none\r\n")
        self.begin()
        self.assertEqual(read_manifest(self.list, self.originals).original("a"), b"\r\none\r\n")
