from __future__ import annotations

import os
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.session.cleanup import OldSession, old_sessions, prune, remove_session
from ironcurtain.session.removed import removed_sessions
from ironcurtain.session.session import Session
from ironcurtain.session.verification import public_key, verify_records
from tests.audit.doubles import scratch
from tests.session.doubles import World, request

OLD, CUT, NEW = 1e9, 1.1e9, 1.2e9


class CleanupTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.home = self.world.home
        self.old, self.new, self.live = self.start(), self.start(), self.start()
        self.addCleanup(lambda: self.close(self.live))
        for session, ended in ((self.old, OLD), (self.new, NEW)):
            self.close(session)
            os.utime(session.paths.snapshot, (ended, ended))
        os.utime(self.live.paths.snapshot, (OLD, OLD))
        (self.old.paths.sandbox / "work").write_bytes(b"x" * 5000)

    def start(self) -> Session:
        return self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request(task="say hello"))))

    def close(self, session: Session) -> None:
        self.successResultOf(Deferred.fromCoroutine(session.close("done")))

    def found(self, *, with_audit: bool = False) -> list[OldSession]:
        return list(old_sessions(self.home, CUT, with_audit=with_audit))

    def names(self, path: Path) -> list[str]:
        return sorted(entry.name for entry in path.iterdir())

    def test_the_audit_log_stays_and_verifies(self) -> None:
        (session,) = self.found()
        self.assertEqual((session.id, session.number, session.ended), (self.old.id, 1, OLD))
        self.assertGreater(session.size, 5000)
        remove_session(self.home, session, NEW, with_audit=False)
        self.assertEqual(self.names(self.old.paths.directory), ["audit.jsonl", "session.json", "session.lock"])
        self.assertTrue(verify_records(self.home, (), chosen=[self.old.paths]).intact)
        self.assertEqual(self.found(), [])

    def test_all_of_it_if_told_so(self) -> None:
        (session,) = self.found(with_audit=True)
        remove_session(self.home, session, NEW, with_audit=True)
        self.assertEqual(self.names(self.home.sessions), sorted([self.new.id, self.live.id]))
        self.assertEqual(removed_sessions(self.home, public_key(self.home)), {self.old.id})
        self.assertEqual(removed_sessions(self.home, None), set())
        forged = self.home.removed_sessions.read_bytes().replace(self.old.id.encode(), self.new.id.encode())
        self.home.removed_sessions.write_bytes(forged)
        self.assertEqual(removed_sessions(self.home, public_key(self.home)), set())

    def test_a_session_that_runs_again_is_left_alone(self) -> None:
        (session,) = self.found()
        os.utime(self.old.paths.snapshot, (NEW, NEW))
        with self.assertRaisesRegex(Unavailable, "used meanwhile"):
            remove_session(self.home, session, NEW, with_audit=True)
        living = OldSession(self.live.id, 3, "", OLD, 0)
        with self.assertRaisesRegex(Unavailable, "runs now"):
            remove_session(self.home, living, NEW, with_audit=True)
        self.assertIn("work", self.names(self.old.paths.sandbox))
        self.assertIn("session.log", self.names(self.live.paths.directory))

    def test_links_are_removed_and_not_followed(self) -> None:
        outside = scratch(self)
        (outside / "file").write_text("mine")
        (self.old.paths.sandbox / "link").symlink_to(outside)
        self.old.paths.recording.symlink_to(outside / "file")
        (self.home.sessions / "linked").symlink_to(outside)
        (session,) = self.found()
        remove_session(self.home, session, NEW, with_audit=False)
        self.assertEqual((outside / "file").read_text(), "mine")
        self.assertNotIn("sandbox", self.names(self.old.paths.directory))

    def test_what_is_no_session_is_left_alone(self) -> None:
        for name, text in (("a", "{}"), ("b", "damaged"), ("c", '{"id":"other","number":1}')):
            (self.home.sessions / name).mkdir()
            (snapshot := self.home.sessions / name / "session.json").write_text(text)
            os.utime(snapshot, (OLD, OLD))
        self.assertEqual([session.id for session in self.found(with_audit=True)], [self.old.id])

    def test_pruning_keeps_audit_logs(self) -> None:
        (sentence,) = prune(self.home, CUT, NEW)
        self.assertIn("session 1", sentence)
        self.assertTrue(self.old.paths.audit.exists())
        self.assertFalse(self.old.paths.sandbox.exists())
        self.assertEqual(prune(self.home, CUT, NEW), [])
