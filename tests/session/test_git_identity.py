"""Who makes the commits of a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.workspace import git_identity


class GitIdentityTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.home)
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    def test_name_and_address_whatever_is_in_them_and_nothing_else(self) -> None:
        strange = 'A "B" \\ \t Ć; #c'
        given = self.home / ".gitconfig"
        for name, value in (("user.name", strange), ("user.email", "a@b.test"), ("core.pager", "secret-program")):
            subprocess.run(["git", "config", "--file", str(given), name, value], check=True)
        made = git_identity(self.environ, None)
        self.assertNotIn(b"secret-program", made)
        given.write_bytes(made)
        read = subprocess.run(["git", "config", "--file", str(given), "user.name"], capture_output=True, check=True)
        self.assertEqual(read.stdout.decode(), f"{strange}\n")

    def test_nobody_told_git(self) -> None:
        self.assertEqual(git_identity(self.environ, None), b"")

    def test_there_is_no_git(self) -> None:
        self.assertEqual(git_identity({**self.environ, "PATH": "/nowhere"}, None), b"")
