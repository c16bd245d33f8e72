"""Which directories may be worked on."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.search_path import host_program
from ironcurtain.session.elsewhere import Elsewhere, remember
from ironcurtain.session.workspace import keep_out_workspaces, usable_workspace


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

    def test_link_to_a_name_that_is_not_utf_8_is_refused(self) -> None:
        target = os.fsdecode(os.fsencode(self.home) + b"/pro\xffject")
        os.mkdir(target)
        (self.home / "link").symlink_to(target)
        self.assertIn("pro\\xffject is not UTF-8 text: rename it", str(self.refusal(self.home / "link")))

    def test_program_of_ironcurtain_inside_is_refused(self) -> None:
        project = self.home / "project"
        (project / "link").symlink_to(self.top)
        for name in ("prefix", "base_prefix", "executable"):
            with self.subTest(name):
                self.patch(sys, name, str(project / ".venv"))
                self.assertIn("from where IronCurtain itself runs", str(self.refusal(project)))
                self.patch(sys, name, str(project / "link" / "elsewhere"))  # an agent could change the link
                self.assertIn("Install IronCurtain with pipx", str(self.refusal(project)))
                self.patch(sys, name, str(self.home))
        self.patch(sys, "path", ["", "relative", str(project / "lib"), *sys.path])
        self.assertIn(f"contains {project}/lib", str(self.refusal(project)))
        self.patch(sys, "path", sys.path[3:])
        self.assertEqual(self.usable(project), project)

    def refusal(self, path: Path) -> UsageError:
        """:returns: why a workspace is refused."""
        error: UsageError = self.assertRaises(UsageError, self.usable, path)
        return error

    def test_programs_in_a_workspace_no_longer_run_on_this_machine(self) -> None:
        project = self.with_program("tools")
        self.assertEqual(host_program("helper", str(project)), str(project / "helper"))
        self.usable(project)
        self.assertIsNone(host_program("helper", str(project)))

    def test_programs_in_workspaces_of_earlier_sessions_do_not_run_on_this_machine(self) -> None:
        first, second, home = (
            self.with_program("first"),
            self.with_program("second"),
            Home(self.top / "ic", self.top / "run"),
        )
        home.prepare()
        inside, outside = home.session("a"), SessionPaths(self.top / "kept")
        for paths, project in ((inside, first), (outside, second)):
            paths.directory.mkdir()
            paths.snapshot.write_text(json.dumps({"id": "a", "number": 1, "workspace": str(project)}))
        remember(home, Elsewhere(id="b", number=2, directory=str(outside.directory)))
        keep_out_workspaces(home)
        own = self.with_program("ic/own")
        for directory in (first, second, own):
            self.assertIsNone(host_program("helper", str(directory)))

    def with_program(self, name: str) -> Path:
        """:returns: a directory with a program in it."""
        directory = self.top / name
        directory.mkdir(exist_ok=True)
        (directory / "helper").touch(0o755)
        return directory
