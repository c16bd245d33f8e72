"""The repository of a linked worktree or a submodule in a container: its mounts, tried with bubblewrap."""

from __future__ import annotations

import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest

from ironcurtain.container.spec import WORKSPACE, Mount, repository_mounts
from ironcurtain.errors import UsageError
from ironcurtain.sandbox import bubblewrap
from ironcurtain.sandbox.linked_repository import LinkedRepository, settings_variables
from ironcurtain.sandbox.system_paths import SYSTEM
from tests.sandbox.repositories import ENVIRONMENT, RepositoryCase


class RepositoryMountsTests(RepositoryCase):
    def mounts(self, workspace: Path) -> list[Mount]:
        found = self.find(workspace)
        files = {}
        for number, (path, content) in enumerate(found.files_for((WORKSPACE,), str(workspace)).items()):
            (self.top / str(number)).write_bytes(content)
            files[path if path.startswith(WORKSPACE) else f"/x{path}"] = str(self.top / str(number))
        # What lies below /tmp cannot be mounted; tests have their files there.
        write, read = (tuple(f"/x{path}" for path in paths) for paths in (found.write, found.read))
        elsewhere = LinkedRepository(f"/x{found.directory}", write, read, f"/x{found.backlink}")
        return [
            Mount(mount.source.removeprefix("/x"), mount.target.removeprefix("/x"), mount.read_only)
            for mount in repository_mounts(elsewhere, files)
        ]

    def run_git(self, workspace: Path, script: str) -> tuple[int, str]:
        if reason := bubblewrap.available():
            raise SkipTest(reason)
        line = ["bwrap", "--unshare-all", "--proc", "/proc", "--dev", "/dev"]
        for path in filter(lambda path: Path(path).exists(), SYSTEM):
            line += ["--ro-bind", path, path]
        line += ["--bind", str(workspace), WORKSPACE]
        for mount in sorted(self.mounts(workspace), key=lambda mount: mount.target.count("/")):
            line += ["--ro-bind" if mount.read_only else "--bind", mount.source, mount.target]
        line += ["--chdir", WORKSPACE, "/bin/sh", "-ec", f"exec 2>&1; {script}"]
        environment = ENVIRONMENT | settings_variables()
        done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_worktree_works_and_survives(self) -> None:
        script = "echo 2 >file; git commit -qam two; git worktree prune; git rev-parse --show-toplevel"
        self.assertEqual(self.run_git(self.workspace, script)[1].splitlines()[-1], WORKSPACE)
        self.assertEqual(self.git(self.workspace, "log", "--format=%s", "-1"), "two\n")
        self.assertEqual(self.git(self.other, "status", "--short"), "")
        self.assertIn(str(self.workspace), (self.common / "worktrees/workspace/gitdir").read_text())

    def test_submodule_works_in_its_directories_too(self) -> None:
        part = self.submodule()
        self.hold(part)
        script = "mkdir d; cd d; echo 2 >new; git add new; git commit -qm two; git rev-parse --show-toplevel"
        self.assertEqual(self.run_git(part, script), (0, f"{WORKSPACE}\n"))
        self.assertEqual(self.git(part, "show", "--format=%s", "--name-only"), "two\n\nd/new\n")

    def test_what_is_writable(self) -> None:
        self.hold()
        found = {mount.target.removeprefix(str(self.common)): mount for mount in self.mounts(self.workspace)}
        own = "/worktrees/workspace"
        writable = {target for target, mount in found.items() if not mount.read_only}
        self.assertEqual(writable, {"/objects", "/refs", "/logs", own})
        names = ("gitdir", "commondir", "config.worktree", "config.worktree.lock")
        self.assertEqual(set(found) - writable, {"", "/workspace/.git", *(f"{own}/{name}" for name in names)})
        self.assertEqual(Path(found[f"{own}/gitdir"].source).read_text(), "/workspace/.git\n")

    def test_path_that_containers_use_is_refused(self) -> None:
        for path in ("/workspace/a", "/home/agent", "/home", "/tmp/a", "/run/ironcurtain/x"):
            found = LinkedRepository(path, (f"{path}/objects",), (), f"{path}/worktrees/a/gitdir")
            self.assertIn("git does not work", str(self.assertRaises(UsageError, repository_mounts, found, {})))
