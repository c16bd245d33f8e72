from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.verification import LogReport
from ironcurtain.audit.witness import read_heads
from ironcurtain.errors import AuditUnavailable, NotFound
from ironcurtain.home.sections import Audit
from ironcurtain.session import events
from ironcurtain.session.session import Session
from ironcurtain.session.verification import check_session, public_key, signed_heads
from tests.audit.doubles import scratch
from tests.session.doubles import World, request


def notices_of(session: Session) -> list[str]:
    return [s.event.text for s in session.events.after(0) if isinstance(s.event, events.Notice)]


class VerificationTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))

    def start_with(self, *witness: str) -> Session:
        settings = msgspec.structs.replace(self.world.services.settings, audit=Audit(witness=witness))
        self.world.manager.services = replace(self.world.services, settings=settings, in_thread=maybeDeferred)
        session = self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request())))
        self.addCleanup(lambda: self.close(session))
        return session

    def close(self, session: Session) -> None:
        self.successResultOf(Deferred.fromCoroutine(session.close("done")))


class ChangedAuditLogTests(VerificationTestCase):
    def test_a_log_that_is_removed_stops_the_session_and_is_said(self) -> None:
        session = self.start_with()
        session.paths.audit.unlink()
        with self.assertRaisesRegex(AuditUnavailable, "removed or moved away while the session ran"):
            session.join("local:bob")
        notices = notices_of(session)
        self.assertEqual((len(notices), "no further calls" in notices[0]), (1, True))
        with self.assertRaises(AuditUnavailable):
            session.join("local:ana")
        self.assertIn("removed or moved away", session.paths.log.read_text())
        self.flushLoggedErrors()


class WitnessTests(VerificationTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.heads = scratch(self) / "heads"

    def check(self, session: Session, witness: Path | None = None) -> LogReport:
        home = self.world.home
        return check_session(home, session.paths, public_key(home), witness, (f"file:{self.heads}",))

    def test_heads_go_outside_and_are_compared(self) -> None:
        session = self.start_with(f"file:{self.heads}")
        session.join("local:bob")
        self.close(session)
        report = self.check(session)
        self.assertEqual((report.problems, report.witnessed_through), ([], report.last - 1))
        lines = session.paths.audit.read_bytes().splitlines(keepends=True)
        session.paths.audit.write_bytes(b"".join(lines[:2]))
        self.assertIn("the log ends at 2", self.check(session).problems[-1].what)
        found = list(read_heads(self.heads.read_bytes().splitlines()))
        self.assertEqual(list(signed_heads(session.paths.audit)), found[:1])

    def test_one_that_cannot_be_reached_is_said_and_stops_nothing(self) -> None:
        self.heads.write_text("something else")
        session = self.start_with(f"file:{self.heads}")
        session.join("local:bob")
        notices = notices_of(session)
        self.assertEqual((len(notices), "cannot be reached" in notices[0]), (1, True))
        self.close(session)
        self.assertEqual(self.check(session).problems, [])

    def test_a_named_witness_must_know_the_session(self) -> None:
        session = self.start_with()
        self.close(session)
        self.assertEqual(self.check(session).problems, [])
        with self.assertRaisesRegex(NotFound, "cannot be read"):
            self.check(session, self.heads)
        self.heads.write_text("")
        self.assertIn("no head of this session", self.check(session, self.heads).problems[0].what)

    def test_a_session_that_ended_has_an_end(self) -> None:
        session = self.start_with()
        self.close(session)
        lines = session.paths.audit.read_bytes().splitlines(keepends=True)
        session.paths.audit.write_bytes(b"".join(lines[:2]))
        self.assertIn("the log has no end", self.check(session).problems[0].what)
        session.paths.audit.write_bytes(lines[0])
        self.assertIn("written together", self.check(session).problems[0].what)
