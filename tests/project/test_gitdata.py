"""What is data in a repository, and what git could run or obey."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.project.gitdata import is_data, is_data_of_repositories
from tests.programs import program

DATA = (
    "HEAD", "ORIG_HEAD", "index", "packed-refs", "COMMIT_EDITMSG", "refs/heads/main", "refs/heads/hooks/pre-commit",
    "logs/HEAD", "refs/remotes/origin/HEAD", "info/exclude", "objects/info/packs", "objects/ab/cdef",
    "objects/info/commit-graphs/commit-graph-chain", "worktrees/a/HEAD", "worktrees/a/index", "worktrees/a/logs/HEAD",
    "modules/a/HEAD", "modules/a/b/index", "modules/a/refs/heads/main", "lfs/objects/ab/cd/abcd",
    "reftable/tables.list",
)  # fmt: skip
OBEYED = (
    "config", "config.worktree", "commondir", "gitdir", "hooks/pre-commit", "hooks/unknown", "info/attributes",
    "info/grafts", "objects/info/alternates", "objects/info/http-alternates", "objects/evil", "objects/ab/c/evil",
    "rebase-merge/git-rebase-todo", "rebase-apply/patch", "rebase-merge/HEAD", "sequencer/todo", "branches/origin",
    "remotes/origin", "rr-cache/x/postimage", "index.lock", "HEAD/x", "config/HEAD", "evil", "head", "REFS/heads/main",
    "worktrees/a/config.worktree", "worktrees/a/rebase-merge/done", "worktrees/HEAD", "modules/HEAD",
    "modules/a/config",
    "modules/a/hooks/pre-push", "modules/refs/hooks/pre-commit", "modules/a/refs/hooks/pre-commit",
    "modules/logs/config",
    "modules/a/refs/config", "modules/a/objects/info/alternates", "modules/refs/objects/info/alternates",
    "modules/refs/rebase-merge/git-rebase-todo", "fsmonitor--daemon",
)  # fmt: skip
IN_MODULES = ["config", "gitdir", "hooks/pre-commit", "rebase-merge/git-rebase-todo", "sequencer/todo", "info/grafts"]
names = st.sampled_from(["refs", "logs", "HEAD", "hooks", "config", "objects", "info", "modules", "rebase-merge", "a"])


class DataTests(SynchronousTestCase):
    def test_data(self) -> None:
        for path in DATA:
            self.assertTrue(is_data(path.split("/")), path)

    def test_everything_else(self) -> None:
        for path in OBEYED:
            self.assertFalse(is_data(path.split("/")), path)

    def test_names_with_digests(self) -> None:
        for number in (40, 64):
            name = "ab" * (number // 2)
            for path in (f"objects/info/commit-graphs/graph-{name}.graph", f"sharedindex.{name}"):
                self.assertTrue(is_data(path.split("/")), path)
                self.assertFalse(is_data(f"{path}x".split("/")), path)

    def test_repository_in_a_repository_counts_for_both(self) -> None:
        for path, data in (
            ("a/.git/HEAD", True),
            ("a/HEAD", True),
            ("hooks/pre-commit", True),
            (".git/refs/.git/hooks/pre-commit", False),
            (".git/x/.git/HEAD", False),
            (".GIT/hooks/pre-commit", False),
        ):
            self.assertEqual(is_data_of_repositories(path), data, path)

    @given(st.lists(names, min_size=1, max_size=3), st.sampled_from(IN_MODULES))
    def test_nothing_that_a_submodule_obeys_is_data_whatever_its_name(self, module: list[str], path: str) -> None:
        self.assertFalse(is_data(["modules", *module, *path.split("/")]), (module, path))

    def test_what_git_makes_is_data_except_settings_and_samples(self) -> None:
        top = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, top)

        def git(*words: str) -> None:
            line = [program("git"), "-C", str(top), "-c", "user.name=a", "-c", "user.email=a@b.test", *words]
            subprocess.run(line, check=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": str(top)})

        git("init", "-q", "-b", "main")
        for number in range(3):
            (top / "file").write_text(str(number))
            git("add", "file")
            git("commit", "-qm", "change")
        git("checkout", "-qb", "other")
        (top / "more").touch()
        git("add", "more")
        git("commit", "-qm", "more")
        git("tag", "-am", "tag", "v1")
        git("stash", "list")
        git("checkout", "-q", "main")
        git("merge", "-q", "--no-ff", "-m", "merge", "other")
        git("worktree", "add", "-q", "../" + top.name + "/wt")
        git("pack-refs", "--all")
        git("gc", "-q")
        git("commit-graph", "write", "--split")
        left = sorted(
            str(path.relative_to(top / ".git"))
            for path in (top / ".git").rglob("*")
            if path.is_file() and not is_data(path.relative_to(top / ".git").parts) and path.suffix != ".sample"
        )
        self.assertEqual(left, ["config", "worktrees/wt/commondir", "worktrees/wt/gitdir"])
