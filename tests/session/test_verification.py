from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SignedHead, SigningKey
from ironcurtain.audit.verification import LogReport
from ironcurtain.audit.witness_lines import head_line, read_heads
from ironcurtain.errors import AuditUnavailable, NotFound
from ironcurtain.files.removal import remove
from ironcurtain.home.sections import Audit
from ironcurtain.session import events
from ironcurtain.session.removed import record_removal
from ironcurtain.session.session import Session
from ironcurtain.session.verification import RecordsReport, signed_heads, verify_records
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

    def verify(self, *sessions: Session, witness: Path | None = None) -> RecordsReport:
        chosen = [session.paths for session in sessions] or None
        return verify_records(self.world.home, (f"file:{self.heads}",), chosen=chosen, witness=witness)

    def check(self, session: Session, witness: Path | None = None) -> LogReport:
        (found,) = self.verify(session, witness=witness).sessions
        return found.log

    def over(self, *witness: str) -> Session:
        """:returns: a session that has ended."""
        session = self.start_with(*witness)
        session.join("local:bob")
        self.close(session)
        return session

    def test_heads_go_outside_and_are_compared(self) -> None:
        session = self.over(f"file:{self.heads}")
        report = self.check(session)
        self.assertEqual((report.problems, report.witnessed_through), ([], report.last - 1))
        lines = session.paths.audit.read_bytes().splitlines(keepends=True)
        session.paths.audit.write_bytes(b"".join(lines[:2]))
        self.assertIn("the log ends at 2", self.check(session).problems[-1].what)
        found = list(read_heads(self.heads.read_bytes().splitlines()))
        self.assertEqual(list(signed_heads(session.paths.audit)), found[:1])

    def test_one_that_cannot_be_reached_stops_nothing_and_is_said(self) -> None:
        self.heads.write_text("something else")
        session = self.over(f"file:{self.heads}")
        notices = notices_of(session)
        self.assertEqual((len(notices), "cannot be reached" in notices[0]), (1, True))
        self.assertIn("no head of this session", self.check(session).problems[0].what)

    def test_a_named_witness_must_know_the_session(self) -> None:
        self.heads.write_text("")
        session = self.over()
        self.assertEqual(self.check(session).problems, [])
        with self.assertRaisesRegex(NotFound, "cannot be read"):
            self.check(session, self.heads.parent / "none")
        self.assertIn("no head of this session", self.check(session, self.heads).problems[0].what)

    def test_session_without_a_head_at_its_fleet_is_said_to_have_no_witness(self) -> None:
        self.heads.write_text("")
        session = self.over()
        (found,) = verify_records(self.world.home, (), chosen=[session.paths], fleet=self.heads).sessions
        self.assertIn("This host has no head of it", found.remarks[0])
        self.assertTrue(found.log.intact)

    def test_a_session_that_ended_has_an_end(self) -> None:
        session = self.over()
        lines = session.paths.audit.read_bytes().splitlines(keepends=True)
        session.paths.audit.write_bytes(b"".join(lines[:2]))
        found = [problem.what for problem in self.check(session).problems]
        self.assertEqual(["the log has no end" in found[0], "session.json has the head" in found[1]], [True, True])
        session.paths.audit.write_bytes(lines[0])
        self.assertIn("written together", self.check(session).problems[0].what)

    def test_any_damaged_session_is_found_without_naming_it(self) -> None:
        sessions = [self.over(f"file:{self.heads}") for _ in range(3)]
        self.assertTrue(self.verify().intact)
        for session in sessions:
            whole = session.paths.audit.read_bytes()
            session.paths.audit.write_bytes(whole.replace(b"local:bob", b"local:eve"))
            report = self.verify()
            self.assertEqual([each.log.intact for each in report.sessions], [each is not session for each in sessions])
            self.assertFalse(report.intact)
            session.paths.audit.write_bytes(whole)
        self.assertTrue(self.verify().intact)

    def test_a_session_is_not_hidden_by_removing_its_description(self) -> None:
        session = self.over()
        self.heads.write_text("")
        session.paths.snapshot.unlink()
        self.assertIn("session.json is missing", self.verify().sessions[0].log.problems[0].what)
        session.paths.audit.unlink()
        self.assertFalse(self.verify().intact)

    def test_a_session_that_has_gone_is_known_to_the_witness(self) -> None:
        gone, stays = self.over(f"file:{self.heads}"), self.over(f"file:{self.heads}")
        remove(gone.paths.directory)
        (problem,) = self.verify().problems
        self.assertRegex(problem, f"session {gone.id} has gone: .* record [0-9]+")
        self.assertEqual(self.verify(stays).problems, ())
        record_removal(self.world.home, gone.id, 1e9)
        self.assertTrue(self.verify().intact)

    def test_heads_of_another_home_are_no_sessions_that_have_gone(self) -> None:
        self.over(f"file:{self.heads}")
        other = SigningKey.load_or_make(scratch(self)).sign("other", 5, "0" * 64, "")
        self.heads.write_bytes(self.heads.read_bytes() + head_line(other))
        self.assertTrue(self.verify().intact)
        (self.world.home.records / "signing.pem").unlink()
        self.assertIn("no key", self.verify().problems[0])

    def test_a_witness_that_is_gone_shortened_or_replaced(self) -> None:
        session = self.over(f"file:{self.heads}")
        lines = self.heads.read_bytes().splitlines(keepends=True)
        self.heads.write_bytes(b"".join(lines[:-1]))
        self.assertIn("has no head after record", self.check(session).problems[0].what)
        for content in (b"", b"something else\n", head_line(SignedHead(session.id, 99, "", "", "key", ""))):
            self.heads.write_bytes(content)
            self.assertIn("no head of this session", self.check(session).problems[0].what)
        self.heads.unlink()
        for report in (self.verify(), self.verify(session)):
            self.assertIn("cannot be read", report.problems[0])

    def test_a_witness_that_the_settings_no_longer_name(self) -> None:
        session = self.over(f"file:{self.heads}", "syslog")
        with self.subTest("readable"):
            (found,) = verify_records(self.world.home, ()).sessions
            self.assertEqual((found.log.problems, found.log.witnessed_through), ([], found.log.last - 1))
            self.assertIn("also went to syslog", found.proved[-1])
        lines = session.paths.audit.read_bytes().splitlines(keepends=True)
        self.heads.write_bytes(b"")
        self.assertIn("no head", verify_records(self.world.home, ()).sessions[0].log.problems[0].what)
        self.heads.unlink()
        self.assertIn("cannot be read", verify_records(self.world.home, ()).sessions[0].log.problems[0].what)
        self.assertEqual(session.paths.audit.read_bytes().splitlines(keepends=True), lines)
