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
