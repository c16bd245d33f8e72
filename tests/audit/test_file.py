from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.syncing import SYNC_SECONDS
from ironcurtain.errors import AuditUnavailable
from ironcurtain.secrets.redaction import Redactor
from tests.audit.doubles import ManualThread, scratch


class ChangedFileTests(SynchronousTestCase):
    """Another program changes the log while its session runs."""

    def setUp(self) -> None:
        self.clock, self.thread = Clock(), ManualThread()
        self.path = scratch(self) / "audit.jsonl"
        self.told: list[str] = []
        self.log = AuditLog(self.path, "s", Redactor(), self.clock, lambda: 1.5e9, self.thread, broken=self.told.append)
        self.addCleanup(lambda: self.log.close().close())

    def noticed(self, change: Callable[[], object], words: str) -> None:
        """Both ways: by the next record, and by whoever waits for the disk."""
        waiting = self.log.durable(self.log.append("call"))
        change()
        self.thread.run()
        self.assertIn(words, self.failureResultOf(waiting, AuditUnavailable).getErrorMessage())
        with self.assertRaisesRegex(AuditUnavailable, words):
            self.log.append("call")
        self.assertEqual((len(self.told), words in self.told[0]), (1, True))
        self.successResultOf(Deferred.fromCoroutine(self.log.close()))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_removed(self) -> None:
        self.noticed(self.path.unlink, "removed or moved")

    def test_moved(self) -> None:
        self.noticed(lambda: self.path.rename(self.path.with_name("x")), "removed or moved")

    def test_replaced_by_a_copy(self) -> None:
        def replace() -> None:
            copy = self.path.with_name("copy")
            copy.write_bytes(self.path.read_bytes())
            copy.rename(self.path)

        self.noticed(replace, "replaced by another file")

    def test_replaced_by_a_link_to_itself(self) -> None:
        def replace() -> None:
            self.path.rename(moved := self.path.with_name("moved"))
            self.path.symlink_to(moved)

        self.noticed(replace, "replaced by another file")

    def test_cut(self) -> None:
        self.noticed(lambda: os.truncate(self.path, 20), "has cut it")

    def test_written_to(self) -> None:
        def write() -> None:
            with self.path.open("ab") as file:
                file.write(b"x\n")

        self.noticed(write, "has written to it")

    def test_the_next_record_notices_it_without_a_sync(self) -> None:
        self.path.unlink()
        with self.assertRaisesRegex(AuditUnavailable, "removed"):
            self.log.append("call")

    def test_record_after_an_outcome_notices_it(self) -> None:
        self.path.unlink()
        self.log.append_outcome("response")
        with self.assertRaisesRegex(AuditUnavailable, "removed"):
            self.log.append("call")

    def test_sync_after_an_outcome_notices_it(self) -> None:
        self.log.append_outcome("response")
        os.truncate(self.path, 20)
        self.clock.advance(SYNC_SECONDS)
        self.thread.run()
        self.assertIn("has cut it", self.told[0])
        with self.assertRaisesRegex(AuditUnavailable, "has cut it"):
            self.log.append_outcome("response")

    def test_outcome_is_a_record_like_others(self) -> None:
        self.log.append("call")
        self.log.append_outcome("response", secret="sk-ant-api03-" + "a" * 40)
        self.log.append("call")
        lines = self.path.read_bytes().splitlines(keepends=True)
        report = chain.verify(lines)
        self.assertEqual((report.intact, report.records), (True, 4))
        self.assertNotIn(b"a" * 40, lines[2])

    def test_a_hard_link_is_no_change(self) -> None:
        os.link(self.path, self.path.with_name("backup"))
        self.log.append("call")
        self.assertEqual(self.told, [])
