from __future__ import annotations

import os
import shutil
import socket
import stat

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ironcurtain.errors import ConfigurationError, NotFound, UsageError
from ironcurtain.project import manifest as limits
from ironcurtain.project.manifest import _quoted, _unquoted, read_manifest, take
from ironcurtain.project.tree import DEPTH_LIMIT, open_tree
from tests.project.worlds import WorkspaceTestCase


class ManifestTests(WorkspaceTestCase):
    def test_it_lists_everything_with_modes_sizes_and_digests(self) -> None:
        self.write("src/main.py", "print()\n", 0o755)
        (self.workspace / "link").symlink_to("src/main.py")
        entries = self.begin().entries
        self.assertEqual(set(entries), {"src", "src/main.py", "link"})
        file = entries["src/main.py"]
        self.assertEqual((file.kind, file.mode, file.size, len(file.digest)), ("file", 0o755, 8, 64))
        self.assertEqual((entries["link"].kind, entries["link"].target), ("link", "src/main.py"))

    def test_originals_are_kept_once(self) -> None:
        self.write("a", "same")
        self.write("b", "same")
        self.write("c", "other")
        manifest = self.begin()
        self.assertEqual([manifest.original(name) for name in "abcd"], [b"same", b"same", b"other", None])
        self.assertEqual(self.originals.stat().st_size, len("sameother"))

    def test_it_is_the_owner_s_alone_and_follows_no_link_in_its_place(self) -> None:
        self.begin()
        for path in (self.list, self.originals):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.originals.unlink()
        self.originals.symlink_to(self.top / "elsewhere")
        self.assertRaises(OSError, self.begin)
        self.assertFalse((self.top / "elsewhere").exists())

    def test_what_blocks_or_is_no_file_is_only_listed(self) -> None:
        """A pipe without a writer would keep a plain reader waiting for ever."""
        os.mkfifo(self.workspace / "pipe")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.workspace / "socket"))
        entries = self.begin().entries
        self.assertEqual({name: entry.kind for name, entry in entries.items()}, {"pipe": "other", "socket": "other"})

    def test_links_to_directories_are_not_entered(self) -> None:
        outside = self.top / "outside"
        outside.mkdir()
        (outside / "secret").write_text("key")
        (self.workspace / "link").symlink_to(outside)
        (self.workspace / "loop").symlink_to(".")
        self.assertEqual(set(self.begin().entries), {"link", "loop"})
        self.assertNotIn(b"key", self.originals.read_bytes())

    def test_large_files_have_a_digest_or_only_a_size(self) -> None:
        self.patch_limit("KEPT_FILE", 10)
        self.patch_limit("READ_FILE", 100)
        self.write("kept", "x" * 10)
        self.write("read", "x" * 11)
        self.write("seen", "x" * 101)
        manifest = self.begin()
        kept = {name: (bool(entry.digest), entry.at >= 0) for name, entry in manifest.entries.items()}
        self.assertEqual(kept, {"kept": (True, True), "read": (True, False), "seen": (False, False)})

    def test_copies_are_bounded_in_total_and_packages_come_last(self) -> None:
        self.patch_limit("KEPT_TOTAL", 25)
        self.write("node_modules/left-pad/index.js", "p" * 20)
        self.write("src/deep/er/main.py", "s" * 20)
        manifest = self.begin()
        self.assertEqual(manifest.original("src/deep/er/main.py"), b"s" * 20)
        self.assertIsNone(manifest.original("node_modules/left-pad/index.js"))

    def test_the_number_of_entries_is_bounded(self) -> None:
        for number in range(20):
            self.write(f"d{number:02}/file")
        listed = {"/".join(place.parts): entry for place, entry in self.tree().entries(limit=22)}
        unlisted = [path for path, entry in listed.items() if not entry.listed]
        self.assertEqual((listed["d00/file"].kind, unlisted), ("file", [f"d{n:02}" for n in range(2, 20)]))

    def test_directories_nested_too_deeply_are_unlisted(self) -> None:
        deepest = "d/" * (DEPTH_LIMIT - 1)
        for path in (f"{deepest}file", f"{deepest}d/file", f"{deepest}d/d/file", f"{deepest}.git/hooks/post-merge"):
            self.write(path)
        for walk in (self.tree().entries(), self.tree().everything()):
            listed = {"/".join(place.parts): entry.listed for place, entry in walk}
            self.assertEqual([path for path in listed if not listed[path]], [f"{deepest}.git", f"{deepest}d"])
            self.assertEqual(max(path.count("/") for path in listed), DEPTH_LIMIT - 1)
            self.assertIn(f"{deepest}file", listed)
        self.begin()
        comparison = self.comparison()
        self.assertEqual((comparison.changes(), comparison.unseen), ([], [f"{deepest}.git", f"{deepest}d"]))

    def test_what_git_obeys_is_listed_before_all_else(self) -> None:
        for number in range(20):
            self.write(f"a{number:02}/file")
        self.write(".git/modules/m/config")
        self.write(".git/modules/m/objects/ab/cd")
        listed = ["/".join(place.parts) for place, _ in self.tree().entries(limit=26)]
        self.assertIn(".git/modules/m/config", listed)
        self.assertNotIn(".git/modules/m/objects/ab", listed)

    def test_a_directory_that_cannot_be_listed_is_said_to_be_unlisted(self) -> None:
        """An agent may take away the permission to list one, and git still finds what it looks for in it."""
        self.write("a/file")
        self.write("b/file")
        walk = self.tree().entries()
        first, _ = next(walk)
        shutil.rmtree(first.path)
        listed = {"/".join(place.parts): entry.listed for place, entry in walk}
        self.assertEqual(listed, {"a": False, "b": True, "b/file": True})

    def test_git_s_objects_are_left_out(self) -> None:
        self.write(".git/objects/ab/cd")
        self.write(".git/objects/pack/p")
        self.write(".git/objects/info/alternates")
        self.write("objects/ab/cd")
        entries = self.begin().entries
        self.assertNotIn(".git/objects/ab/cd", entries)
        self.assertNotIn(".git/objects/pack/p", entries)
        self.assertIn(".git/objects/info/alternates", entries)
        self.assertIn("objects/ab/cd", entries)

    def test_a_walk_that_is_stopped_leaves_no_manifest(self) -> None:
        self.write("a")
        tree = self.tree()
        tree.stopped = lambda: True
        take(tree, self.list, self.originals)
        self.assertRaises(NotFound, read_manifest, self.list, self.originals)

    def test_a_workspace_that_is_a_link_or_gone_is_refused(self) -> None:
        (self.top / "link").symlink_to(self.workspace)
        self.assertRaises(UsageError, open_tree, str(self.top / "link"))
        self.assertRaises(UsageError, open_tree, str(self.top / "missing"))

    def test_newer_and_damaged_ones_are_refused_by_name(self) -> None:
        self.begin()
        for text in (b'{"version":2,"workspace":"/"}\n', b"", b"{}\n", self.list.read_bytes() + b"{"):
            self.list.write_bytes(text)
            error = self.assertRaises(ConfigurationError, read_manifest, self.list, self.originals)
            self.assertIn(str(self.list), str(error))

    def patch_limit(self, name: str, value: int) -> None:
        self.patch(limits, name, value)

    def test_names_need_not_be_text(self) -> None:
        name = b'caf\xe9 \n"%41'.decode("utf-8", "surrogateescape")
        self.write(name, "x")
        (self.workspace / "link").symlink_to(name)
        manifest = self.begin()
        self.assertEqual(manifest.original(name), b"x")
        self.assertEqual(manifest.entries["link"].target, name)
        for line in self.list.read_bytes().splitlines():
            msgspec.json.decode(line)

    @given(st.binary(min_size=1, max_size=30).filter(lambda name: b"\0" not in name))
    def test_every_name_can_be_written_and_read(self, name: bytes) -> None:
        self.assertEqual(os.fsencode(_unquoted(_quoted(os.fsdecode(name)))), name)
