"""Snapshots before plans of a shell, until one fails."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.home.sections import UndoSettings
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session.snapshots import WorkspaceSnapshots
from ironcurtain.shell.messages import Message, Notice
from ironcurtain.shell.plan_snapshots import PlanSnapshots
from tests.audit.doubles import at_once, scratch


class PlanSnapshotTests(SynchronousTestCase):
    def make(self, files: int, wanted: bool = True) -> PlanSnapshots:
        """:returns: those of a directory with three files."""
        top, clock = scratch(self), Clock()
        self.workspace = top / "workspace"
        self.workspace.mkdir()
        for name in "abc":
            (self.workspace / name).write_text(name)
        audit = AuditLog(top / "audit.jsonl", "s-1", Redactor(), clock, clock.seconds, at_once)
        self.addCleanup(lambda: self.successResultOf(Deferred.fromCoroutine(audit.close())))
        settings = UndoSettings(max_files=files)
        self.told: list[Message] = []
        self.snapshots = WorkspaceSnapshots(
            top / "snapshots", settings, audit, clock, clock.seconds, at_once, lambda event: None
        )
        return PlanSnapshots(self.snapshots, self.workspace, (), wanted, self.told.append)

    def prepare(self, made: PlanSnapshots) -> bool:
        return self.successResultOf(Deferred.fromCoroutine(made.prepare()))

    def test_each_plan_has_one(self) -> None:
        made = self.make(files=100)
        self.assertEqual([self.prepare(made), self.prepare(made), made.possible, self.told], [True, True, True, []])

    def test_a_directory_that_is_too_large_is_looked_at_once_and_the_user_is_told(self) -> None:
        made = self.make(files=2)
        self.assertEqual((made.possible, self.prepare(made), made.possible), (True, False, False))
        (told,) = self.told
        assert isinstance(told, Notice)
        self.assertIn("more than 2 files", told.text)
        (self.workspace / "a").unlink()
        (self.workspace / "b").unlink()
        self.assertFalse(self.prepare(made))
        self.assertEqual(len(self.told), 1)

    def test_there_is_none_where_the_settings_want_none(self) -> None:
        made = self.make(files=100, wanted=False)
        self.assertEqual((made.possible, self.prepare(made), self.told), (False, False, []))
        self.assertFalse(Path(self.workspace.parent / "snapshots").exists())
