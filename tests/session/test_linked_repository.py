"""Sessions in a workspace whose git repository is elsewhere: what people are told at their start and their end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.sandbox.linked_repository import linked_repository
from tests.machine import LINKED, demand_sandbox
from tests.product import Product


class LinkedRepositoryTests(SynchronousTestCase):
    def setUp(self) -> None:
        if shutil.which("git") is None:
            raise SkipTest("needs git")
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.project.rmdir()
        self.main = self.product.person / "main"
        self.common = self.main / ".git"
        self.git("init", "--quiet", str(self.main))
        self.git("commit", "--quiet", "--allow-empty", "-m", "begin")
        self.git("worktree", "add", "--quiet", str(self.product.project), "-b", "linked")

    def git(self, *words: str) -> None:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        cwd = self.main if self.main.exists() else self.product.person
        subprocess.run(["git", *identity, *words], env=self.product.environ, cwd=cwd, check=True)

    def start(self, workspace: str = ".") -> str:
        """:returns: what a session says of itself."""
        words = ("--backend", self.product.script({"text": "hi"}), "--workspace", workspace)
        done = self.product.run("start", *words, "hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_repository_is_named_at_the_start(self) -> None:
        demand_sandbox(LINKED)
        self.assertIn(f"git repository is {self.common.resolve()}: the agent can change its branches", self.start())

    def test_reason_why_git_does_not_work_is_told_at_the_start(self) -> None:
        (self.product.project / ".git").write_text(f"gitdir: {self.common}\n")
        self.assertIn("git does not work in sandboxes and containers here", self.start())

    def test_hooks_that_appear_there_are_to_review(self) -> None:
        hook = self.common / "hooks/pre-commit"
        self.product.run("loop", "--prompt", "x", "-n", "1", "--", "sh", "-c", f"echo x >'{hook}'; echo x >.envrc")
        (review,) = [record for record in self.product.audit() if record["kind"] == "review"]
        self.assertEqual([file["path"] for file in review["files"]], [str(hook.resolve()), ".envrc"])
        self.assertTrue(review["complete"])

    def submodule(self) -> Path:
        self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(self.main), "part")
        return self.main / "part"

    def test_settings_of_a_submodule_are_held_at_the_start(self) -> None:
        demand_sandbox(LINKED)
        self.assertIn("nobody can change its settings until the session has ended", self.start(str(self.submodule())))

    def test_settings_of_a_submodule_are_held_until_the_session_ends(self) -> None:
        part, own = self.submodule(), self.common / "modules/part"
        words = ("--prompt", "x", "-n", "1", "--workspace", str(part), "--", "sh", "-c")
        self.product.run("loop", *words, f"ls '{own}' >seen; git config user.name x 2>said")
        self.assertLess({"commondir", "config.lock"}, set((part / "seen").read_text().split()))
        self.assertIn("could not lock config file", (part / "said").read_text())
        self.assertFalse({"commondir", "config.lock"} & {path.name for path in own.iterdir()})
        (review,) = [record for record in self.product.audit() if record["kind"] == "review"]
        self.assertEqual((review["files"], review["complete"]), ([], True))

    def test_settings_that_cannot_be_let_go_are_named(self) -> None:
        part, own = self.submodule(), self.common / "modules/part"
        words = ("--prompt", "x", "-n", "1", "--workspace", str(part), "--", "sh", "-c")
        self.product.run("loop", *words, f"mv '{own}' '{own}2'; echo >'{own}'")
        (log,) = self.product.home.glob("sessions/*/session.log")
        self.assertIn("git's settings stay held: [Errno 20] Not a directory", log.read_text())
        self.assertNotIn("Traceback", log.read_text())

    def test_git_only_reads_a_submodule_in_sessions_without_a_comparison_even_if_another_holds_it(self) -> None:
        demand_sandbox(LINKED)
        part = self.submodule()
        found = linked_repository(str(part.resolve()))
        assert found is not None
        self.addCleanup(found.hold().release)
        done = self.product.run("mcp-proxy", "--workspace", str(part), stdin="")
        self.assertIn("git only reads it here", done.stderr)
