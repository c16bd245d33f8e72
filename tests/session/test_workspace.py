"""Which directories may be worked on, and what is covered in them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.session.workspace import protected_inside, usable_workspace


class WorkspaceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.home = self.top / "home"
        for name in (".config/gh", ".config/app", ".ironcurtain", "project"):
            (self.home / name).mkdir(parents=True)
        self.protected = [str(self.home / name) for name in (".config/gh", ".config/op", ".ironcurtain")]

    def usable(self, path: Path, mask: bool = False) -> Path:
        return usable_workspace(path, self.home, self.home / ".ironcurtain", self.protected, mask)

    def test_a_project(self) -> None:
        self.assertEqual(self.usable(self.home / "project"), self.home / "project")

    def test_what_holds_something_protected_is_refused_with_its_names(self) -> None:
        error = self.assertRaises(UsageError, self.usable, self.home / ".config")
        self.assertIn(f"contains protected paths: {self.home}/.config/gh: choose", str(error))
        self.assertIn("--mask", str(error))
        self.assertEqual(self.usable(self.home / ".config", mask=True), self.home / ".config")

    def test_covering_opens_nothing_else(self) -> None:
        for place in (self.home, self.top, self.home / ".config/gh", self.home / ".ironcurtain", Path("/")):
            self.assertRaises(UsageError, self.usable, place, mask=True)

    def test_what_is_inside(self) -> None:
        found = protected_inside(self.home / ".config", self.protected)
        self.assertEqual(found, (f"{self.home}/.config/gh",))
        (self.home / "project" / "key").symlink_to(self.home / ".config/gh")
        self.assertEqual(protected_inside(self.home / "project", self.protected), ())
