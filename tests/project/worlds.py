"""A workspace with a manifest, to change and compare."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.project.changes import Change, Comparison
from ironcurtain.project.manifest import Manifest, read_manifest, take
from ironcurtain.project.patch import patch
from ironcurtain.project.planted import SuspectFile, findings
from ironcurtain.project.tree import Tree, close, open_tree
from tests.audit.doubles import open_files, scratch


class WorkspaceTestCase(SynchronousTestCase):
    """Write into ``self.workspace``, call :meth:`begin`, change it, and look."""

    def setUp(self) -> None:
        self.before = open_files(alone=True)
        self.addCleanup(lambda: self.assertEqual(open_files(), self.before))
        self.top = scratch(self)
        self.workspace = self.top / "workspace"
        self.workspace.mkdir()
        self.list, self.originals = self.top / "manifest.jsonl", self.top / "originals"

    def write(self, path: str, content: str | bytes = "x\n", mode: int = 0o644) -> Path:
        """Write a file below the workspace."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        file.chmod(mode)
        return file

    def tree(self) -> Tree:
        """:returns: the workspace, open for the length of the test."""
        tree = open_tree(str(self.workspace.resolve()))
        self.addCleanup(close, tree)
        return tree

    def begin(self) -> Manifest:
        """Take the manifest."""
        take(self.tree(), self.list, self.originals)
        return read_manifest(self.list, self.originals)

    def comparison(self) -> Comparison:
        """:returns: the workspace now beside the manifest."""
        return Comparison(read_manifest(self.list, self.originals), self.tree())

    def changed(self) -> dict[str, str]:
        """:returns: the changes: path and what."""
        return {change.path: change.what for change in self.comparison().changes()}

    def as_patch(self, binary: bool = False) -> str:
        """:returns: all changes as text."""
        comparison = self.comparison()
        return "".join(patch(change, comparison.before, comparison.after, binary) for change in comparison.changes())

    def findings(self) -> list[SuspectFile]:
        """:returns: what a person should look at."""
        comparison = self.comparison()
        return findings(comparison.changes(), comparison.before, comparison.after)

    def reasons(self) -> dict[str, str]:
        """:returns: each path to look at, with its reasons."""
        told: dict[str, str] = {}
        for finding in self.findings():
            told[finding.path] = f"{told[finding.path]}; {finding.reason}" if finding.path in told else finding.reason
        return told

    def change(self, path: str) -> Change:
        """:returns: the change of a path."""
        return next(change for change in self.comparison().changes() if change.path == path)
