"""Repositories of linked worktrees and submodules: which are accepted, and what git can do with them in a sandbox."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox.linked_repository import FORGET, linked_repository
from tests.sandbox.repositories import RepositoryCase

WORK = (
    "echo 2 >file; git commit -qam two; git checkout -q -b more; echo 3 >file; git commit -qam three; "
    "git checkout -q workspace; git merge -q more; echo 4 >file; git stash -q; git stash pop -q; git status --short"
)


class WorktreeTests(RepositoryCase):
    def test_git_works(self) -> None:
        status, said = self.inside(WORK)
        self.assertEqual((status, said.splitlines()[-1]), (0, " M file"))
        self.assertEqual(self.git(self.repository, "log", "--format=%s", "more"), "three\ntwo\nfirst\n")
        self.assertEqual(self.git(self.workspace, "status", "--short"), " M file\n")

    def test_git_works_for_another_account_with_files_of_ours(self) -> None:
        account = Account(4242, 4242) if os.geteuid() == 0 else Account(os.geteuid(), os.getegid())
        self.top.chmod(0o755)
        for path in (self.top, *self.top.rglob("*")):
            os.chown(path, account.uid, -1, follow_symlinks=False)
        status, said = self.inside(WORK, account=account)
        self.assertEqual((status, said.splitlines()[-1]), (0, " M file"))

    def test_git_only_reads_where_the_workspace_is_read_only(self) -> None:
        self.assertEqual(self.inside("git status --short; git log --format=%s", writable=False), (0, "first\n"))
        status, said = self.inside("git branch new", writable=False)
        self.assertNotEqual(status, 0)
        self.assertIn("Read-only file system", said)

    def test_nothing_that_git_obeys_elsewhere_can_be_changed(self) -> None:
        (self.common / "modules").mkdir()
        for name in ("config", "commondir", "config.worktree", "hooks/pre-commit", "modules/x", "HEAD", "index",
                     "rebase-merge", "info/attributes", "worktrees/x", "worktrees/other/commondir",
                     "worktrees/workspace/gitdir", "worktrees/workspace/commondir"):  # fmt: skip
            status, said = self.inside(f"echo x >'{self.common}/{name}'")
            self.assertNotEqual(status, 0, name)
            self.assertIn("Read-only file system", said, name)

    def test_branch_of_a_remote_is_switched_to(self) -> None:
        self.git(self.top, "clone", "-q", "--bare", str(self.repository), str(self.workspace / "remote.git"))
        self.git(self.workspace / "remote.git", "branch", "theirs", "main")
        self.git(self.repository, "remote", "add", "origin", str(self.workspace / "remote.git"))
        self.git(self.repository, "fetch", "-q", "origin")
        self.assertEqual(self.inside("git switch -q theirs; git branch --show-current"), (0, "theirs\n"))
        self.assertEqual(self.inside("git switch -q -c my origin/main; git branch --show-current"), (0, "my\n"))

    def test_conflict_is_resolved_where_resolutions_are_kept(self) -> None:
        (self.common / "rr-cache").mkdir()
        script = (
            "git switch -q -c more; echo a >file; git commit -qam a; git switch -q -; echo b >file; git commit -qam b; "
            "git merge -q more || echo c >file; git commit -qam merged; git log --format=%s -1"
        )
        status, said = self.inside(script)
        self.assertEqual((status, said.splitlines()[-1]), (0, "merged"), said)

    def test_branches_stay_since_git_cannot_lock_their_list(self) -> None:
        self.inside("git branch new; git branch -D new main")
        self.assertIn("new", self.git(self.repository, "branch"))

    def test_agents_are_told_how_to_end_a_cherry_pick_which_git_cannot(self) -> None:
        self.assertIn(f"`{FORGET}`", self.find().advice)
        for action, commit in (
            ("cherry-pick", "workspace"),
            ("revert", "HEAD~1"),
            ("rebase", "--onto workspace HEAD~1"),
        ):
            script = (
                "git switch -q -C more main; echo a >file; git commit -qam a; echo b >file; git commit -qam b; "
                "git switch -q -C workspace main; echo c >file; git commit -qam c; git switch -q more; "
                f"git {action} {commit} || true; echo d >file; git add file; GIT_EDITOR=true git {action} --continue; "
                f"{FORGET}; git switch -q --detach main; git commit -q --amend -m mine"
            )
            status, said = self.inside(script)
            self.assertEqual(status, 0, said)

    def test_other_worktrees_survive(self) -> None:
        self.inside(f"git worktree prune; git worktree remove --force '{self.other}'; git gc; true")
        self.assertEqual(self.git(self.other, "status", "--short"), "")
        self.assertEqual(self.git(self.workspace, "status", "--short"), "")

    def test_history_is_made_where_it_is_missing(self) -> None:
        shutil.rmtree(self.common / "logs")
        self.assertEqual(self.inside("echo 2 >file; git commit -qam two"), (0, ""))
        self.assertTrue((self.common / "logs/refs/heads/workspace").exists())

    def test_worktree_of_a_bare_repository(self) -> None:
        self.git(self.top, "clone", "-q", "--bare", str(self.repository), "bare")
        self.git(self.top / "bare", "worktree", "add", "-q", str(self.top / "from-bare"), "-b", "b")
        self.assertEqual(self.inside("echo 2 >file; git commit -qam two", self.top / "from-bare"), (0, ""))


class SubmoduleTests(RepositoryCase):
    def setUp(self) -> None:
        super().setUp()
        self.part = self.submodule()
        self.own = self.common / "modules/libs/part"
        self.hold(self.part)

    def test_git_works(self) -> None:
        self.assertEqual(
            self.inside("echo 2 >file; git commit -qam two; git log --format=%s -1", self.part), (0, "two\n")
        )
        self.assertIn("new commits", self.git(self.repository, "status"))

    def test_settings_and_hooks_cannot_be_changed(self) -> None:
        for name in ("config", "hooks/pre-commit", "commondir", "config.worktree"):
            status, said = self.inside(f"echo x >'{self.own}/{name}'", self.part)
            self.assertNotEqual(status, 0, name)
            self.assertIn("Read-only file system", said, name)
        for name in ("config", "hooks", "commondir", "config.worktree", "config.lock"):
            self.assertIn("busy", self.inside(f"mv '{self.own}/{name}' '{self.own}/x'", self.part)[1], name)

    def test_hooks_that_are_a_link_are_refused(self) -> None:
        shutil.rmtree(self.own / "hooks")
        (self.own / "hooks").symlink_to(self.top / "new")
        self.assertIn("/hooks", str(self.assertRaises(UsageError, linked_repository, str(self.part))))
        self.assertFalse((self.top / "new").exists())


class AcceptanceTests(RepositoryCase):
    def refused(self, workspace: Path | None = None, protected: tuple[str, ...] = ()) -> str:
        error = self.assertRaises(UsageError, linked_repository, str(workspace or self.workspace), protected)
        self.assertIn("git does not work", str(error))
        return str(error)

    def name(self, directory: Path | str) -> None:
        (self.workspace / ".git").write_text(f"gitdir: {directory}\n")

    def test_repository_in_the_workspace_needs_nothing(self) -> None:
        self.assertIsNone(linked_repository(str(self.repository)))
        self.assertIsNone(linked_repository(str(self.top)))
        (self.top / "outer").mkdir()
        (self.top / "outer/.git").write_text("gitdir: inner/.git\n")
        shutil.copytree(self.common, self.top / "outer/inner/.git")
        self.assertIsNone(linked_repository(str(self.top / "outer")))

    def test_repository_that_does_not_name_the_workspace_is_refused(self) -> None:
        for directory in (self.common / "worktrees/other", self.common, self.common / "worktrees", self.top):
            self.name(directory)
            self.refused()

    def test_forged_worktree_in_the_workspace_gives_nothing_outside(self) -> None:
        forged = self.workspace / "forged"
        forged.mkdir()
        (forged / "gitdir").write_text(f"{self.workspace}/.git\n")
        (forged / "commondir").write_text(f"{self.common}\n")
        self.name(forged)
        self.assertIsNone(linked_repository(str(self.workspace)))

    def test_directory_of_a_worktree_apart_from_its_repository_is_refused(self) -> None:
        apart = self.top / "apart"
        shutil.copytree(self.common / "worktrees/workspace", apart)
        (apart / "commondir").write_text(f"{self.common}\n")
        self.name(apart)
        self.assertIn("is not a worktree of", self.refused())

    def test_worktree_that_was_moved_says_how_to_repair_it(self) -> None:
        moved = self.workspace.rename(self.top / "moved")
        self.assertIn("git worktree repair", self.refused(moved))

    def test_link_instead_of_the_file_is_refused(self) -> None:
        (self.workspace / ".git").unlink()
        (self.workspace / ".git").symlink_to(self.common)
        self.refused()

    def test_missing_repository_is_named(self) -> None:
        self.name("/nonexistent/\x1b[1mx")
        self.assertIn("/nonexistent/\\x1b[1mx", self.refused())

    def test_protected_repository_is_refused(self) -> None:
        for path in (self.top / "main", self.common, self.common / "config"):
            self.assertIn("which is protected", self.refused(protected=(str(path),)))

    def test_directory_of_a_repository_is_refused_except_below_a_home(self) -> None:
        (self.repository / "sub/sub").mkdir(parents=True)
        self.assertIn(f"a part of {self.repository}", self.refused(self.repository / "sub/sub"))
        keys = str(self.repository / ".ssh")
        self.assertIsNone(linked_repository(str(self.repository / "sub"), [keys]))

    def test_repository_around_the_workspace_is_refused(self) -> None:
        inside = self.common / "within"
        self.git(self.repository, "worktree", "add", "-q", str(inside), "-b", "within")
        self.assertIn("contains the workspace", self.refused(inside))

    def test_links_in_the_repository_are_refused(self) -> None:
        for name in ("objects", "refs", "logs", "config", "HEAD"):
            place, kept = self.common / name, self.top / "kept"
            place.rename(kept)
            place.symlink_to(kept)
            self.assertIn(f"{self.common}/{name}", self.refused(), name)
            place.unlink()
            kept.rename(place)

    def test_link_in_place_of_settings_is_refused(self) -> None:
        (self.common / "worktrees/workspace/config.worktree").symlink_to(self.top / "new")
        self.assertIn("link at", self.refused())
        self.assertFalse((self.top / "new").exists())

    def test_names_of_any_bytes_can_be_told(self) -> None:
        (self.workspace / ".git").write_bytes(b"gitdir: /nowhere/\xff\n")
        self.assertTrue(self.refused().encode())

    def test_stored_files_behind_a_link_are_not_mounted(self) -> None:
        (self.common / "lfs").symlink_to(self.top)
        self.assertNotIn(f"{self.common}/lfs", self.find().write)
        (self.common / "lfs").unlink()
        (self.common / "lfs").mkdir()
        self.assertIn(f"{self.common}/lfs", self.find().write)

    def test_link_of_the_worktree_itself_is_refused(self) -> None:
        own = self.common / "worktrees/workspace"
        for name in ("gitdir", "commondir"):
            (own / name).rename(self.top / name)
            (own / name).symlink_to(self.top / name)
            self.refused()
            (own / name).unlink()
            (self.top / name).rename(own / name)

    def test_pipe_does_not_block(self) -> None:
        (self.workspace / ".git").unlink()
        os.mkfifo(self.workspace / ".git")
        self.refused()


class FileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.workspace = tempfile.mkdtemp(prefix="ic", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.workspace)

    @given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda data: b"gitdir: " + data)))
    def test_any_file_is_read(self, data: bytes) -> None:
        Path(self.workspace, ".git").write_bytes(data)
        with contextlib.suppress(UsageError):
            self.assertIsNone(linked_repository(self.workspace))
