"""How a person starts the programs of this installation."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.own_programs import daemon_command


class DaemonCommandTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.twistd = self.add("pipx venvs/bin", "twistd")
        self.patch(sys, "executable", str(self.add("pipx venvs/bin", "python")))

    def add(self, directory: str, name: str) -> Path:
        """:returns: a new program."""
        place = self.top / directory
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
        return place / name

    def said(self, *directories: Path) -> list[str]:
        """:returns: the words of the command where these are the PATH."""
        self.patch(os, "environ", {"PATH": os.pathsep.join(map(str, directories))})
        return shlex.split(daemon_command())

    def test_path_is_named_where_the_shell_would_not_find_it(self) -> None:
        other = self.add("other", "twistd")
        for directories in ((), (self.top,), (other.parent,), (other.parent, self.twistd.parent)):
            self.assertEqual(self.said(*directories), [str(self.twistd), "ironcurtain"], directories)

    def test_name_is_enough_where_the_shell_finds_it(self) -> None:
        link = self.top / "linked" / "twistd"
        link.parent.mkdir()
        link.symlink_to(self.twistd)
        for directories in ((self.twistd.parent,), (self.top, link.parent)):
            self.assertEqual(self.said(*directories), ["twistd", "ironcurtain"], directories)

    def test_programs_of_a_distribution_are_not_beside_python(self) -> None:
        self.twistd.unlink()
        self.assertEqual(self.said(self.top), ["twistd", "ironcurtain"])
