"""Checkpoints of loops: the product as its users have it."""

from __future__ import annotations

import subprocess

from ironcurtain.loop.state import read_state
from tests.loop.test_product import NTH, LoopCase
from tests.machine import LINKED, demand_sandbox


class CheckpointTests(LoopCase):
    """Each iteration that changed something is committed."""

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words], env=self.product.environ, cwd=self.product.project, text=True, capture_output=True,
            check=True,
        ).stdout  # fmt: skip

    def setUp(self) -> None:
        super().setUp()
        (self.product.person / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "begin")

    def log(self) -> list[str]:
        return self.git("log", "--format=%s", "--reverse").splitlines()

    def test_what_changed(self) -> None:
        self.loop("--git-checkpoint", "-n", "3", script=f"test {NTH} = 2 || date +%N >file", status=3)
        self.assertEqual(self.log(), ["begin", "Loop iteration 1", "Loop iteration 3"])
        commits = [iteration.commit for iteration in read_state(self.session() / "loop.json").iterations]
        self.assertEqual(commits[2], self.git("rev-parse", "HEAD").strip())
        self.assertEqual(commits[1], "")

    def test_only_what_an_iteration_changed_in_the_workspace(self) -> None:
        (self.product.project / "sub").mkdir()
        for name in ("mine", "staged", "sub/f", "sub/old"):
            (self.product.project / name).write_text("before\n")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "more")
        (self.product.project / "mine").write_text("mine\n")
        (self.product.project / "staged").write_text("mine\n")
        (self.product.project / "untracked").write_text("mine\n")
        self.git("add", "staged")
        script = "date +%N >f; date >new; rm -f old"
        words = ("--workspace", "sub", "-p", "go on", "--git-checkpoint", "-n", "2")
        self.loop(*words, script=script, status=3)
        self.assertEqual(self.log(), ["begin", "more", "Loop iteration 1", "Loop iteration 2"])
        changed = self.git("diff", "--name-status", "HEAD~2", "HEAD").splitlines()
        self.assertEqual(changed, ["M\tsub/f", "A\tsub/new", "D\tsub/old"])
        self.assertEqual(self.git("status", "--porcelain").splitlines(), [" M mine", "M  staged", "?? untracked"])

    def test_what_a_killed_loop_left_does_not_keep_it_from_going_on(self) -> None:
        self.loop("--git-checkpoint", "-n", "1", script="date +%N >file", status=3)
        (self.product.project / "file").write_text("left by an iteration that was killed\n")
        self.loop("--resume", "-n", "2", status=3)
        self.assertEqual(self.log(), ["begin", "Loop iteration 1", "Loop iteration 2"])

    def test_all_files_are_removed(self) -> None:
        (self.product.project / "sub").mkdir()
        (self.product.project / "sub" / "f").write_text("before\n")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "more")
        self.loop("--workspace", "sub", "-p", "x", "--git-checkpoint", "-n", "1", script="rm f", status=3)
        self.assertEqual(self.git("ls-tree", "-r", "--name-only", "HEAD"), "PROMPT.md\n")

    def test_merge_that_an_iteration_began(self) -> None:
        script = (
            "git checkout -q -b other; date >a; git add a; git commit -qm other; git checkout -q -; date >b; git add b;"
            "git commit -qm mine; git merge -q --no-ff --no-commit other"
        )
        self.loop("--git-checkpoint", "-n", "1", script=script, status=3)
        self.assertEqual(len(self.git("rev-list", "--parents", "-1", "HEAD").split()), 3)

    def test_work_of_the_person_is_not_committed(self) -> None:
        for name in ("PROMPT.md", "my file"):
            (self.product.project / name).write_text("mine\n")
            done = self.loop("--git-checkpoint", "-n", "1", script="date >file", status=64)
            self.assertIn("the workspace has changes that are not committed", done.stderr)
            self.assertIn(name, done.stderr)
            self.git("stash", "--include-untracked")
        self.assertEqual(self.log(), ["begin"])
        self.assertEqual(list(self.product.home.glob("sessions/*")), [])

    def test_nobody_known_to_commit(self) -> None:
        (self.product.person / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
        self.git("config", "user.useConfigOnly", "true")
        done = self.loop("--git-checkpoint", "-n", "1", script="date >file", status=64)
        self.assertIn("git config --global user.email", done.stderr)
        self.assertNotIn("\\n", done.stderr)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.com")
        self.loop("--git-checkpoint", "-n", "1", script="date >file", status=3)
        self.assertEqual(self.log(), ["begin", "Loop iteration 1"])

    def test_problems_are_told_on_one_line(self) -> None:
        script = "git config --unset user.name; git config user.email ''; date >file"
        self.git("config", "user.name", "Ada")
        self.git("config", "user.useConfigOnly", "true")
        self.git("config", "user.email", "ada@example.com")
        (self.product.person / ".gitconfig").unlink()
        done = self.loop("--git-checkpoint", "-n", "1", script=script, status=3)
        self.assertIn("no checkpoint: git commit failed: ", done.stderr)
        self.assertNotIn("\\n", done.stderr)

    def test_linked_worktree(self) -> None:
        demand_sandbox(LINKED)
        main = self.product.project.rename(self.product.person / "main")
        self.product.project.mkdir()
        self.git("-C", str(main), "worktree", "add", "--quiet", str(self.product.project), "-b", "linked")
        self.loop("--git-checkpoint", "-n", "1", script="date >file", status=3)
        self.assertEqual(self.log(), ["begin", "Loop iteration 1"])

    def test_worktree_that_its_repository_does_not_know_is_refused(self) -> None:
        main = self.product.project.rename(self.product.person / "main")
        self.product.project.mkdir()
        (self.product.project / ".git").write_text(f"gitdir: {main}/.git\n")
        self.prompt.write_text("x")
        done = self.loop("--git-checkpoint", "-n", "1", script="true", status=64)
        self.assertIn("git does not work in sandboxes", done.stderr)

    def trapped(self, setting: str) -> None:
        """Whatever the agent has git run, it has nothing but the repository."""
        trap = self.product.person / "trapped"
        script = (
            f"git config {setting} \"$PWD/trap\"; printf '#!/bin/sh\\ntouch {trap} trapped\\ncat\\n' >trap;"
            "chmod +x trap;"
            "echo '* filter=x' >.gitattributes;"
            "for hook in pre-commit post-commit prepare-commit-msg; do cp trap .git/hooks/$hook; done; date >file"
        )
        self.loop("--git-checkpoint", "-n", "1", script=script, status=3)
        self.assertEqual(self.log(), ["begin", "Loop iteration 1"])
        self.assertFalse(trap.exists())

    def test_hooks(self) -> None:
        self.trapped("core.pager")
        self.assertFalse((self.product.project / "trapped").exists())

    def test_filters(self) -> None:
        self.trapped("filter.x.clean")
        self.assertTrue((self.product.project / "trapped").exists())

    def test_a_link_in_the_repository(self) -> None:
        outside = self.product.person / "outside"
        outside.write_text("mine\n")
        self.loop("--git-checkpoint", "-n", "1", script=f"date >file; ln -sf {outside} .git/COMMIT_EDITMSG", status=3)
        self.assertEqual(outside.read_text(), "mine\n")
