from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, SessionError, UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.session import manager
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.session import Session
from tests.audit.doubles import open_files, scratch
from tests.session.doubles import World, request


class ManagerTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.before = open_files(alone=True)
        self.world = World(scratch(self))
        self.manager = self.world.manager

    def create(self) -> Session:
        return self.successResultOf(Deferred.fromCoroutine(self.manager.create(request())))

    def close(self, session: Session) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.manager.close(session, "enough")))


class TableTests(ManagerTestCase):
    def test_a_session_is_found_by_number_and_id(self) -> None:
        session, other = self.create(), self.create()
        for name in (session.number, str(session.number), session.id):
            self.assertIs(self.manager.get(name), session)
        self.assertEqual(self.manager.all(), [session, other])
        for name in (99, "", "x", session.id[:8], "01", session.id.upper() + "x"):
            self.assertRaises(NotFound, self.manager.get, name)

    def test_an_unknown_kind_is_named_with_those_there_are(self) -> None:
        created = Deferred.fromCoroutine(self.manager.create(SessionRequest("other")))
        self.assertIn("choose one of plain", str(self.failureResultOf(created, UsageError).value))

    def test_without_a_kind_it_is_the_one_of_the_settings(self) -> None:
        for default, wanted in (("", "'builtin'"), ("codex", "'codex'")):
            settings = msgspec.structs.replace(self.world.services.settings, default_agent=default)
            manager = SessionManager({}, replace(self.world.services, settings=settings), lambda request: Path("/"))
            created = Deferred.fromCoroutine(manager.create(SessionRequest("")))
            self.assertIn(f"there is no agent {wanted}", str(self.failureResultOf(created, UsageError).value))

    def test_the_workspace_is_checked_before_anything_is_made(self) -> None:
        def refuse(request: SessionRequest) -> Path:
            raise UsageError(f"not {request.workspace}")

        manager = SessionManager({"plain": self.world.kind}, self.world.services, refuse)
        created = Deferred.fromCoroutine(manager.create(request(workspace=Path("/"))))
        self.failureResultOf(created, UsageError)
        self.assertFalse(self.world.home.path.exists())

    def test_numbers_are_never_used_twice_by_processes_of_one_home(self) -> None:
        other = World(scratch(self), at=self.world.home)
        numbers = []
        for world in (self.world, other, self.world, other):
            session = self.successResultOf(Deferred.fromCoroutine(world.manager.create(request())))
            numbers.append(session.number)
            self.successResultOf(Deferred.fromCoroutine(world.manager.close(session, "enough")))
        self.assertEqual(numbers, [1, 2, 3, 4])

    def test_closed_sessions_can_be_looked_at_for_a_while(self) -> None:
        self.patch(manager, "CLOSED_KEPT", 5)
        sessions = [self.create() for _ in range(8)]
        for session in sessions[1:]:
            self.close(session)
        self.assertEqual(self.manager.all(), [sessions[0], *sessions[3:]])


class SideBySideTests(ManagerTestCase):
    def test_sessions_share_nothing(self) -> None:
        one, other = self.create(), self.create()
        waiting, asking = one.send("wait"), other.send("ask")
        self.assertEqual([one.info.pending, other.info.pending], [0, 1])
        (pending,) = other.escalations.pending()
        self.assertRaises(NotFound, one.escalations.decide, pending.number, Outcome.APPROVED, "ada")
        other.escalations.decide(pending.number, Outcome.APPROVED, "ada")
        self.assertEqual(self.successResultOf(asking).text, "approved by ada")
        self.assertNoResult(waiting)
        self.close(other)
        self.assertNoResult(waiting)
        self.world.agents[0].waiting[0].callback(None)
        self.assertEqual(self.successResultOf(waiting).text, "you said wait")
        self.assertEqual([len(one.history.turns), len(other.history.turns)], [1, 1])
        for attribute in ("paths", "events", "history", "escalations", "workspace"):
            self.assertIsNot(getattr(one, attribute), getattr(other, attribute))
        self.assertNotIn(other.id, one.paths.audit.read_text() + one.paths.log.read_text())

    def test_many_at_once(self) -> None:
        sessions = [self.create() for _ in range(20)]
        asking = [session.send("ask") for session in sessions]
        for session in reversed(sessions):
            session.escalations.decide(session.escalations.pending()[0].number, Outcome.APPROVED, f"p{session.number}")
        texts = [self.successResultOf(one).text for one in asking]
        self.assertEqual(texts, [f"approved by p{session.number}" for session in sessions])
        self.successResultOf(Deferred.fromCoroutine(self.manager.stop("the end")))
        self.assertEqual(open_files(), self.before)


class StopTests(ManagerTestCase):
    def test_all_end_although_one_fails(self) -> None:
        sessions = [self.create() for _ in range(3)]
        self.world.agents[0].stop_trouble = RuntimeError("stuck")
        self.world.tools[1].stop_trouble = RuntimeError("stuck")
        sessions[0].paths.snapshot.unlink()
        sessions[0].paths.snapshot.mkdir()
        self.successResultOf(Deferred.fromCoroutine(self.manager.stop("the end")))
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 2)
        self.assertEqual({session.info.state for session in sessions}, {"closed"})
        self.assertEqual((self.world.registered(), open_files()), ([], self.before))
        self.assertEqual(self.world.clock.getDelayedCalls(), [])

    def test_it_waits_for_the_slowest_but_not_for_ever(self) -> None:
        sessions = [self.create() for _ in range(2)]
        self.world.agents[0].stop_pause = Deferred()
        stopping = Deferred.fromCoroutine(self.manager.stop("the end"))
        self.assertNoResult(stopping)
        self.assertEqual(sessions[1].info.state, "closed")
        self.world.clock.advance(60)
        self.successResultOf(stopping)
        self.flushLoggedErrors()
        self.assertEqual(open_files(), self.before)

    def test_nothing_starts_afterwards(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.manager.stop("the end")))
        self.successResultOf(Deferred.fromCoroutine(self.manager.stop("the end")))
        created = Deferred.fromCoroutine(self.manager.create(request()))
        error = self.failureResultOf(created, SessionError).value
        assert isinstance(error, SessionError)
        self.assertEqual(error.code, "SESSION_INIT_FAILED")
        self.assertFalse(os.path.exists(self.world.home.path))
