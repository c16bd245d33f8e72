"""Repositories with linked worktrees and submodules, made by git."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds
from ironcurtain.sandbox import bubblewrap, programs
from ironcurtain.sandbox.held_settings import HeldSettings
from ironcurtain.sandbox.linked_repository import LinkedRepository, linked_repository, settings_variables
from ironcurtain.sandbox.spec import Sandbox

IDENTITY = {f"GIT_{who}_{what}": "ada@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **IDENTITY}


class RepositoryCase(SynchronousTestCase):
    """
    :ivar repository: a repository with a commit.
    :ivar workspace: its linked worktree; :ivar other: another one.
    """

    def setUp(self) -> None:
        if shutil.which("git") is None:
            raise SkipTest("needs git")
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.repository, self.workspace, self.other = (self.top / name for name in ("main", "workspace", "other"))
        self.common = self.repository / ".git"
        self.git(self.top, "init", "-q", "-b", "main", str(self.repository))
        (self.repository / "file").write_text("1\n")
        self.git(self.repository, "add", ".")
        self.git(self.repository, "commit", "-qm", "first")
        for place in (self.workspace, self.other):
            self.git(self.repository, "worktree", "add", "-q", str(place), "-b", place.name)

    def git(self, directory: Path, *words: str) -> str:
        """:returns: what git prints outside any sandbox."""
        command = ["git", "-c", "protocol.file.allow=always", *words]
        return subprocess.run(
            command, cwd=directory, env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def submodule(self) -> Path:
        """:returns: a submodule of :attr:`repository`, as a workspace."""
        self.git(self.repository, "submodule", "--quiet", "add", str(self.repository), "libs/part")
        return self.repository / "libs/part"

    def find(self, workspace: Path | None = None) -> LinkedRepository:
        """:returns: the repository of a workspace, which must be elsewhere."""
        found = linked_repository(str(workspace or self.workspace))
        assert found is not None
        return found

    def hold(self, workspace: Path | None = None) -> HeldSettings:
        """:returns: the held settings of a workspace's repository, until the test ends."""
        held = self.find(workspace).hold()
        self.addCleanup(held.release)
        return held

    def inside(
        self, script: str, workspace: Path | None = None, writable: bool = True, account: Account | None = None
    ) -> tuple[int, str]:
        """
        :param account: the account that runs it, with files of ours that say where the repository is.
        :returns: the status and output of a shell script in a sandbox with the workspace and its repository.
        """
        if reason := bubblewrap.available():
            raise SkipTest(reason)
        place = str(workspace or self.workspace)
        read, write = self.find(workspace).mounts(writable)
        read, write = (read, (*write, place)) if writable else ((*read, place), write)
        files = () if account is None else tuple(self.find(workspace).files_for([place], place).items())
        sandbox = Sandbox(read, write, cwd=place, files=files, account=None if account is None else account.switched)
        environment = ENVIRONMENT | settings_variables()
        done = programs.run(sandbox, ["/bin/sh", "-ec", f"exec 2>&1; {script}"], environment, Bounds(60))
        return done.status, (done.output + done.errors).decode()
