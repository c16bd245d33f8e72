"""Which directories may be worked on."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.session.workspace import usable_workspace


class WorkspaceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.home = self.top / "home"
        for name in (".config/gh", ".config/app", ".ironcurtain", "project"):
            (self.home / name).mkdir(parents=True)
        self.protected = [str(self.home / name) for name in (".config/gh", ".config/op", ".ironcurtain")]

    def usable(self, path: Path) -> Path:
        return usable_workspace(path, self.home, self.home / ".ironcurtain", self.protected)

    def test_a_project(self) -> None:
        self.assertEqual(self.usable(self.home / "project"), self.home / "project")

    def test_what_holds_something_protected_is_refused_with_its_names(self) -> None:
        error = self.assertRaises(UsageError, self.usable, self.home / ".config")
        self.assertIn(f"contains protected paths: {self.home}/.config/gh: move", str(error))
        self.assertIn("in a clone (--repo) or another worktree", str(error))

    def test_homes_and_protected_directories_are_refused(self) -> None:
        for place in (self.home, self.top, self.home / ".config/gh", self.home / ".ironcurtain", Path("/")):
            self.assertRaises(UsageError, self.usable, place)

    def test_link_to_something_protected_is_harmless_and_a_protected_link_is_not(self) -> None:
        project = self.home / "project"
        (project / "key").symlink_to(self.home / ".config/gh")
        self.assertEqual(self.usable(project), project)
        (project / "config").mkdir()
        (project / ".env").symlink_to("config")
        self.protected.append(str(project / ".env"))
        self.assertIn("project/.env", str(self.assertRaises(UsageError, self.usable, project)))
