"""Directories that contain protected paths: given piece by piece for reading, and not at all for writing."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.sandbox import pieces
from ironcurtain.sandbox.pieces import all_names, check_writable, existing, names_in, readable_pieces

paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)


class PiecesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        for name in (".ssh/key", ".config/gh/hosts", ".config/app/settings", "project/file", ".netrc"):
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(name)

    def pieces(self, *protected: str, whole: str = "") -> list[str]:
        names = all_names(f"{self.top}/{name}" for name in protected)
        whole = f"{self.top}/{whole}" if whole else ""
        return [os.path.relpath(path, self.top) for path in readable_pieces(str(self.top), names, whole)]

    def test_directory_without_protected_paths_is_given_whole(self) -> None:
        self.assertEqual(self.pieces(), ["."])

    def test_directory_with_protected_paths_is_given_without_them(self) -> None:
        self.assertEqual(self.pieces(".ssh", ".config/gh", ".netrc"), [".config/app", "project"])

    def test_path_that_does_not_exist_yet_has_no_mounted_parent(self) -> None:
        self.assertEqual(self.pieces("project/later"), [".config", ".netrc", ".ssh", "project/file"])

    def test_links_beside_protected_paths_are_left_out(self) -> None:
        (self.top / "link").symlink_to(".ssh")
        self.assertNotIn("link", self.pieces(".ssh"))
        self.assertEqual(self.pieces(".ssh/key"), [".config", ".netrc", "project"])

    def test_both_ends_of_a_protected_link_are_left_out(self) -> None:
        (self.top / "keys").symlink_to("project")
        self.assertEqual(self.pieces("keys"), [".config", ".netrc", ".ssh"])

    def test_workspace_is_never_divided(self) -> None:
        self.assertIn("project", self.pieces("project/later", whole="project"))

    def test_path_that_is_named_exactly_is_given(self) -> None:
        path = str(self.top / ".ssh")
        self.assertEqual(list(readable_pieces(path, all_names((path,)))), [path])

    def test_too_many_pieces_are_refused(self) -> None:
        self.patch(pieces, "PIECES_LIMIT", 3)
        error = self.assertRaises(Unavailable, self.pieces, "project/later")
        self.assertIn("give the directories in it that are needed", str(error))

    def test_writable_directory_with_a_protected_name_is_refused_whether_it_exists_or_not(self) -> None:
        for name in (".ssh", "project/later", "missing/later"):
            error = self.assertRaises(Unavailable, check_writable, str(self.top), all_names((f"{self.top}/{name}",)))
            self.assertIn(f"{self.top}/{name} is protected", str(error))
        check_writable(f"{self.top}/project", all_names((f"{self.top}/.ssh", f"{self.top}/project", "/elsewhere")))

    def test_existing_names_without_links_that_lead_out(self) -> None:
        (self.top / "project" / "out").symlink_to(self.top / ".ssh")
        (self.top / "project" / "within").symlink_to("file")
        project = self.top / "project"
        names = names_in(str(project), all_names(f"{project}/{name}" for name in ("file", "later", "out", "within")))
        self.assertEqual(existing(project, names), (f"{project}/file", f"{project}/within"))

    @given(st.sets(paths, max_size=6), st.sets(paths, min_size=1, max_size=3))
    def test_no_piece_is_or_contains_a_protected_path(self, files: set[str], protected: set[str]) -> None:
        with tempfile.TemporaryDirectory() as name:
            top = Path(name).resolve()
            for file in sorted(files):
                (top / file).mkdir(parents=True, exist_ok=True)
            names = all_names(f"{top}/{path}" for path in protected)
            found = list(readable_pieces(str(top), names))
            for piece in map(Path, found):
                self.assertEqual(
                    [n for n in map(Path, names) if n.is_relative_to(piece) or piece.is_relative_to(n)], []
                )
            for file in files:  # whatever else exists is in a piece, or is a directory around one that is protected
                path = top / file
                near = any(n.is_relative_to(path) or path.is_relative_to(n) for n in map(Path, names))
                self.assertTrue(near or any(path.is_relative_to(piece) for piece in found), (file, protected))
