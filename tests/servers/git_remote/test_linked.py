"""Git of the server in a workspace whose repository is elsewhere."""

from __future__ import annotations

from ironcurtain.servers.git_remote.__main__ import main
from ironcurtain.servers.git_remote.runner import GitFailed, Runner
from tests.machine import LINKED, demand_sandbox
from tests.sandbox.repositories import ENVIRONMENT, RepositoryCase


class LinkedTests(RepositoryCase):
    def run_git(self, *words: str, writes: bool = True, repository: str = "") -> str:
        runner = Runner(str(self.workspace), ENVIRONMENT, repository or str(self.common))
        return runner.in_workspace(words, str(self.workspace), writes=writes)

    def test_it_reads_and_writes(self) -> None:
        demand_sandbox(LINKED)
        self.run_git("branch", "new")
        self.assertIn("new", self.run_git("branch", writes=False))
        self.assertRaises(GitFailed, self.run_git, "branch", "newer", writes=False)

    def test_another_repository_than_at_the_start_is_refused(self) -> None:
        error = self.assertRaises(GitFailed, self.run_git, "status", repository="/another")
        self.assertIn("names another repository", str(error))

    def test_without_a_repository_elsewhere_none_is_mounted(self) -> None:
        runner = Runner(str(self.workspace), ENVIRONMENT)
        self.assertRaises(GitFailed, runner.in_workspace, ["status"], str(self.workspace), writes=False)

    def test_usage(self) -> None:
        self.assertEqual(main(["--repository=/r"]), 64)
