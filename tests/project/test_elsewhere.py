"""What a person should look at in a repository outside the workspace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ironcurtain.project.changes import Comparison
from ironcurtain.project.elsewhere import open_repository, repository_findings
from ironcurtain.project.manifest import read_manifest, take
from ironcurtain.project.tree import close
from tests.sandbox.repositories import RepositoryCase


class RepositoryFindingsTests(RepositoryCase):
    def reasons(self, workspace: Path, change: Callable[[], object]) -> dict[str, str]:
        """:returns: the reasons to look at files of the repository after a change, by path."""
        listed, originals, repository = self.top / "list", self.top / "originals", self.find(workspace)
        before = open_repository(repository)
        self.addCleanup(close, before)
        take(before, listed, originals)
        change()
        after = open_repository(repository)
        self.addCleanup(close, after)
        found = repository_findings(Comparison(read_manifest(listed, originals), after), repository.directory)
        return {file.path: file.reason for file in found}

    def test_settings_and_hooks_are_compared(self) -> None:
        def change() -> None:
            for name in ("hooks/pre-commit", "hooks/own", "commondir", "objects/x"):
                (self.common / name).write_text("x")
            with (self.common / "config").open("a") as settings:
                settings.write("[core]\n\tsshCommand = x\n")

        found = self.reasons(self.workspace, change)
        names = ("hooks/pre-commit", "hooks/own", "commondir", "config")
        self.assertEqual(set(found), {str(self.common / name) for name in names})
        self.assertIn("core.sshcommand", found[str(self.common / "config")])

    def test_only_the_own_worktree_is_compared(self) -> None:
        def change() -> None:
            for name in ("workspace", "other"):
                (self.common / f"worktrees/{name}/config.worktree").write_text("[core]\n\tpager = x\n")
                (self.common / f"worktrees/{name}/commondir").write_text("/tmp\n")

        own = self.common / "worktrees/workspace"
        self.assertEqual(set(self.reasons(self.workspace, change)), {f"{own}/config.worktree", f"{own}/commondir"})

    def test_submodule(self) -> None:
        part = self.submodule()
        hook = self.common / "modules/libs/part/hooks/pre-commit"
        self.assertEqual(set(self.reasons(part, lambda: hook.write_text("x"))), {str(hook)})

    def test_what_an_agent_leaves_beside_the_settings_of_a_submodule_is_named(self) -> None:
        part, own = self.submodule(), self.common / "modules/libs/part"
        self.hold(part)
        left = ("rebase-merge/git-rebase-todo", "modules/x/config", "objects/info/alternates", "info/attributes")

        def change() -> None:
            script = "echo 2 >file; git commit -qam two; git tag new; "
            script += "".join(
                f"mkdir -p '{own / name}'; rmdir '{own / name}'; echo x >'{own / name}'; " for name in left
            )
            self.assertEqual(self.inside(script, part), (0, ""))

        self.assertEqual(set(self.reasons(part, change)), {str(own / name) for name in left})
