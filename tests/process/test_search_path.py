"""Tests of ironcurtain.process.search_path."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.process.search_path import (
    KEPT_SECONDS,
    host_environment,
    host_path,
    host_program,
    keep_out,
    required_program,
)


class SearchPathTests(SynchronousTestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.top = Path(made.name).resolve()
        self.project, self.tools = self.top / "project", self.top / "tools"
        self.inside = self.program(self.project / ".venv" / "bin")
        self.outside = self.program(self.tools)

    def program(self, directory: Path) -> Path:
        """:returns: a program named ``helper`` in a new directory."""
        directory.mkdir(parents=True)
        path = directory / "helper"
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    def found(self, *directories: str | Path) -> str | None:
        return host_program("helper", os.pathsep.join(map(str, directories)), str(self.project))

    def test_program_in_a_workspace_is_passed_over(self) -> None:
        self.assertEqual(self.found(self.inside.parent, self.tools), str(self.outside))
        self.assertIsNone(self.found(self.inside.parent))

    def test_first_of_two_directories_wins(self) -> None:
        first = self.program(self.top / "first")
        self.assertEqual(self.found(first.parent, self.tools), str(first))

    def test_relative_and_empty_directories_are_left_out(self) -> None:
        where = os.getcwd()
        os.chdir(self.project)
        self.addCleanup(os.chdir, where)
        self.assertIsNone(self.found(".venv/bin", "", "."))
        self.assertEqual(host_path("bin::.:/usr/bin", str(self.project)), "/usr/bin")

    def test_directory_that_a_link_leads_to_is_examined(self) -> None:
        (self.top / "bin").symlink_to(self.inside.parent)
        self.assertIsNone(self.found(self.top / "bin"))

    def test_path_with_parent_directories_is_examined(self) -> None:
        self.assertIsNone(self.found(f"{self.tools}/../project/.venv/bin"))

    def test_program_that_is_a_link_into_a_workspace_is_passed_over(self) -> None:
        self.outside.unlink()
        self.outside.symlink_to(self.inside)
        self.assertIsNone(self.found(self.tools))

    def test_link_that_leads_out_by_way_of_a_workspace_is_passed_over(self) -> None:
        other = self.program(self.top / "other")
        (self.project / "hop").symlink_to(other.parent)
        (self.top / "bin").symlink_to(self.project / "hop")
        self.assertIsNone(self.found(self.top / "bin"))
        (self.project / "link").symlink_to(other)
        self.outside.unlink()
        self.outside.symlink_to(self.project / "link")
        self.assertIsNone(self.found(self.tools))

    def test_directory_that_others_may_write_is_left_out(self) -> None:
        self.tools.chmod(0o757)
        self.assertIsNone(self.found(self.tools))
        self.tools.chmod(0o1777)
        self.assertIsNone(self.found(self.tools))
        self.tools.chmod(0o775)  # with groups of one member each, as Debian makes them
        self.assertEqual(self.found(self.tools), str(self.outside))

    def test_directory_below_one_that_others_may_write_is_left_out(self) -> None:
        self.top.chmod(0o757)
        self.assertIsNone(self.found(self.tools))
        self.top.chmod(0o1777)
        self.assertEqual(self.found(self.tools), str(self.outside))

    def test_program_that_others_may_write_is_passed_over(self) -> None:
        self.outside.chmod(0o757)
        self.assertIsNone(self.found(self.tools))

    def test_directory_of_another_account_is_left_out(self) -> None:
        if os.geteuid() == 0:
            os.chown(self.tools, 65534, 65534)
            self.assertIsNone(self.found(self.tools))
        self.patch(os, "geteuid", lambda: 4242)
        self.assertIsNone(self.found(self.top / "tools"))

    def test_workspace_that_was_named_once_is_kept_out(self) -> None:
        search = f"{self.inside.parent}:{self.tools}"
        self.assertEqual(host_program("helper", search), str(self.inside))
        keep_out(str(self.project))
        self.assertEqual(host_program("helper", search), str(self.outside))
        self.assertEqual(host_environment({"PATH": search, "A": "b"}), {"PATH": str(self.tools), "A": "b"})

    def test_directory_beside_a_workspace_with_a_longer_name_is_searched(self) -> None:
        other = self.program(self.top / "project-tools")
        self.assertEqual(self.found(other.parent), str(other))

    def test_path_of_the_process_is_searched_by_default(self) -> None:
        self.patch(os, "environ", {"PATH": str(self.tools)})
        self.assertEqual(required_program("helper"), str(self.outside))
        with self.assertRaisesRegex(Unavailable, "the program other is missing .*install things"):
            required_program("other", "things")

    def test_empty_path_finds_nothing(self) -> None:
        self.assertIsNone(host_program("helper", ""))


class KeptTests(SynchronousTestCase):
    """Paths that only root may change, as those of the system."""

    def setUp(self) -> None:
        self.now, self.asked = time.monotonic() + 2 * KEPT_SECONDS, 0
        self.patch(time, "monotonic", lambda: self.now)
        status = os.stat

        def counted(path: str, **how: bool) -> os.stat_result:
            self.asked += path == "/usr"
            return status(path, **how)

        self.patch(os, "stat", counted)

    def test_path_of_root_is_examined_once_for_a_moment(self) -> None:
        path = host_program("env", "/usr/bin")
        self.assertEqual((path, self.asked), ("/usr/bin/env", 2))
        self.now += 0.9 * KEPT_SECONDS
        self.assertEqual((host_program("env", "/usr/bin"), self.asked), (path, 2))
        self.now += 0.1 * KEPT_SECONDS
        self.assertEqual((host_program("env", "/usr/bin"), self.asked), (path, 4))

    def test_kept_path_is_passed_over_in_a_workspace(self) -> None:
        self.assertEqual(host_path("/usr/sbin"), "/usr/sbin")
        self.assertEqual(host_path("/usr/sbin", "/usr"), "")

    def test_path_that_a_group_may_write_is_examined_each_time(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root makes a directory that no other account may change")
        with tempfile.TemporaryDirectory(dir="/usr/local") as directory:
            os.chmod(directory, 0o775)
            self.assertEqual(host_path(directory), directory)
            os.chmod(directory, 0o777)
            self.assertEqual(host_path(directory), "")
