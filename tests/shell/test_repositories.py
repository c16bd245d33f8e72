"""Repositories whose root lies above the directory that git runs in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.repositories import repository_root
from tests.audit.doubles import scratch

WHOLE = (
    *("git diff", "git checkout main", "git stash pop", "git add -A", "git commit -am x", "git log -p", "git show"),
    *(
        "git reset --hard",
        "git merge x",
        "git -C deeper diff",
        "cd deeper && git diff",
        "git grep x",
        "git restore -s x",
    ),
)
"""What uses files of the whole repository, which the text does not name."""

NAMED = ("git diff -- a", "git add a", "git add .", "git checkout -- a", "git commit -m x", "git status", "git log")
"""What uses only what it names, or shows no contents."""


class RepositoryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(os.path.realpath(scratch(self)))
        self.sub = self.top / "repository" / "sub"
        (self.sub / "deeper").mkdir(parents=True)

    def judged(self, command: str, **tables: Any) -> Verdict:
        """:returns: the verdict in the directory below, by a policy that allows everything there."""
        files = {"mode": "allow", "write": ["$CWD/**", "$CWD/.*", "$CWD/**/.*"], "read": ["$CWD/**"], **tables}
        given = {"shell": {"mode": "allow"}, "filesystem": files}
        gate = CommandGate(read_approval(given, "p", "/home/ada"), (), "/home/ada", os.path.realpath, str(self.sub))
        return gate.judged(command, str(self.sub))

    def test_root_is_found_as_git_finds_it(self) -> None:
        self.assertEqual(repository_root(str(self.sub)), str(self.sub))
        mark = self.top / "repository" / ".git"
        for make, remove in (
            (mark.mkdir, mark.rmdir),
            (mark.touch, mark.unlink),
            (lambda: mark.symlink_to("nowhere"), mark.unlink),
        ):
            make()
            self.assertEqual(repository_root(str(self.sub / "deeper")), str(mark.parent))
            remove()
        (self.top / "link").symlink_to(self.sub)
        (self.top / "repository" / ".git").mkdir()
        self.assertEqual(repository_root(str(self.top / "link")), os.path.realpath(self.top / "repository"))

    def test_files_above_that_are_denied_are_asked_about(self) -> None:
        denied = str(self.top / "repository" / ".env")
        for command in (*WHOLE, *NAMED):
            self.assertIs(self.judged(command, deny=[denied]).decision, Decision.ALLOW, command)
        (self.top / "repository" / ".git").mkdir()
        for command in WHOLE:
            verdict = self.judged(command, deny=[denied])
            self.assertEqual((verdict.decision, verdict.rule), (Decision.ESCALATE, "approval.filesystem.deny"), command)
        for command in NAMED:
            self.assertIs(self.judged(command, deny=[denied]).decision, Decision.ALLOW, command)

    def test_what_changes_files_above_is_asked_unless_they_may_be_written(self) -> None:
        (self.top / "repository" / ".git").mkdir()
        for command in ("git checkout main", "git stash pop", "git reset --hard"):
            verdict = self.judged(command)
            self.assertEqual(
                (verdict.decision, verdict.rule), (Decision.ESCALATE, "approval.filesystem.write"), command
            )
            self.assertIn(str(self.top / "repository"), [each.value for each in verdict.resources])
        self.assertIs(self.judged("git add a").decision, Decision.ALLOW)
