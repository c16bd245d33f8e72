from __future__ import annotations

from math import inf
from pathlib import Path

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, IronCurtainError, NotFound, SessionError, Unavailable, UsageError
from ironcurtain.session.cleanup import old_sessions, remove_session
from ironcurtain.session.elsewhere import described
from ironcurtain.session.manager import Slot, TooMany
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.resume import closed_session
from ironcurtain.session.session import Session
from tests.audit.doubles import open_files, scratch
from tests.session.doubles import PlainAgent, World, request


class ResumeTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.before = open_files(alone=True)
        self.world = World(scratch(self))

    def start(self, asked: SessionRequest, world: World | None = None) -> Session:
        manager = (world or self.world).manager
        return self.successResultOf(Deferred.fromCoroutine(manager.create(asked)))

    def fails(self, asked: SessionRequest, kind: type[IronCurtainError], world: World | None = None) -> str:
        manager = (world or self.world).manager
        return str(self.failureResultOf(Deferred.fromCoroutine(manager.create(asked)), kind).value)

    def closed(self, asked: SessionRequest) -> Session:
        session = self.start(asked)
        self.successResultOf(session.send("hello"))
        self.successResultOf(Deferred.fromCoroutine(self.world.manager.close(session, "enough")))
        return session

    def test_it_goes_on_as_the_same_session(self) -> None:
        old = self.closed(request(task="mend", options={"model": "m", "policy": "/p"}))
        new = self.start(SessionRequest("", "document", options={"model": "other"}, resume=old.id))
        self.assertEqual((new.id, new.number, new.label, new.paths), (old.id, old.number, old.label, old.paths))
        self.assertEqual(new.info.options, {"model": "other", "policy": "/p"})
        self.assertEqual(new.info.turns, 1)
        self.successResultOf(new.send("again"))
        self.assertEqual([turn.number for turn in new.history.turns], [1, 2])
        core = self.world.agents[-1].core
        assert core is not None
        self.assertTrue(core.resumed)
        self.assertIs(self.world.manager.get(old.number), new)

    def test_a_session_whose_files_were_removed_is_not_resumed(self) -> None:
        old = self.closed(request())
        self.assertEqual([info.id for info in described(self.world.home)], [old.id])
        [kept] = old_sessions(self.world.home, inf, with_audit=False)
        remove_session(self.world.home, kept, 0.0, with_audit=False)
        why = self.fails(SessionRequest("", resume=old.id), Unavailable)
        self.assertIn("its files were removed", why)
        self.assertEqual(list(described(self.world.home)), [])

    def test_the_number_counts_on_for_others(self) -> None:
        old = self.closed(request())
        self.start(SessionRequest("", resume=old.id))
        self.assertEqual(self.start(request()).number, old.number + 1)

    def test_a_session_that_runs_is_left_alone(self) -> None:
        session = self.start(request())
        other = World(scratch(self), at=self.world.home)
        for world in (self.world, other):
            self.assertIn("runs now", self.fails(SessionRequest("", resume=session.id), Unavailable, world))
        self.successResultOf(session.send("hello"))

    def test_two_that_want_it_at_once(self) -> None:
        old = self.closed(request())
        self.world.next_agent = PlainAgent(pause=Deferred())
        first = Deferred.fromCoroutine(self.world.manager.create(SessionRequest("", resume=old.id)))
        self.assertIn("runs now", self.fails(SessionRequest("", resume=old.id), Unavailable))
        assert self.world.next_agent.pause is not None
        self.world.next_agent.pause.callback(None)
        self.assertIs(self.world.manager.get(old.number), self.successResultOf(first))

    def test_a_start_that_fails_leaves_it_as_it_was(self) -> None:
        old = self.closed(request())
        self.world.next_agent = PlainAgent(trouble=Unavailable("no model"))
        self.fails(SessionRequest("", resume=old.id), SessionError)
        self.assertIs(self.world.manager.get(old.number), old)
        self.assertEqual(open_files(), self.before)
        self.world.next_agent = PlainAgent()
        self.start(SessionRequest("", resume=old.id))

    def test_options_are_kept_once_it_has_started_with_them(self) -> None:
        old = self.closed(request(options={"policy": "/good"}))
        wrong = SessionRequest("", options={"policy": "/wrong"}, resume=old.id)
        self.world.next_agent = PlainAgent(trouble=Unavailable("no policy"))
        self.fails(wrong, SessionError)
        self.assertEqual(closed_session(self.world.home, old.id).options, {"policy": "/good"})
        self.world.next_agent = PlainAgent(pause=Deferred())
        starting = Deferred.fromCoroutine(self.world.manager.create(wrong))
        self.assertEqual(self.options_on_disk(old), {"policy": "/good"})
        assert self.world.next_agent.pause is not None
        self.world.next_agent.pause.callback(None)
        self.successResultOf(starting)
        self.assertEqual(self.options_on_disk(old), {"policy": "/wrong"})

    def options_on_disk(self, session: Session) -> object:
        return msgspec.json.decode(session.paths.snapshot.read_bytes())["options"]

    def test_what_is_no_session(self) -> None:
        old = self.closed(request())
        for name in ("nothing", "../sessions", old.id[:8], "."):
            self.fails(SessionRequest("", resume=name), NotFound)
        old.paths.snapshot.write_bytes(old.paths.snapshot.read_bytes().replace(b'"version":1', b'"version":2'))
        self.fails(SessionRequest("", resume=old.id), ConfigurationError)
        old.paths.snapshot.write_bytes(b"\xff")
        self.fails(SessionRequest("", resume=old.id), ConfigurationError)

    def test_it_keeps_its_agent_and_its_workspace(self) -> None:
        place = scratch(self)
        old = self.closed(request(workspace=place))
        self.fails(SessionRequest("another", resume=old.id), UsageError)
        self.fails(SessionRequest("", workspace=Path("/tmp"), resume=old.id), UsageError)
        self.assertEqual(self.start(SessionRequest("", resume=old.id)).workspace, place)

    def test_everything_is_given_back(self) -> None:
        old = self.closed(request())
        new = self.start(SessionRequest("", resume=old.id))
        self.successResultOf(Deferred.fromCoroutine(self.world.manager.close(new, "enough")))
        self.assertEqual(open_files(), self.before)


class CheckTests(SynchronousTestCase):
    def test_the_check_of_a_kind_comes_before_anything_is_made(self) -> None:
        world = World(scratch(self))

        async def check(asked: SessionRequest) -> SessionRequest:
            raise Unavailable("no engine")

        world.manager._kinds = {"plain": replace(world.kind, check=check)}
        self.failureResultOf(Deferred.fromCoroutine(world.manager.create(request())), Unavailable)
        self.assertFalse(world.home.path.exists())

    def test_a_kind_without_projects_takes_no_repository(self) -> None:
        world = World(scratch(self))
        created = Deferred.fromCoroutine(world.manager.create(request(options={"repo": "https://host.test/x"})))
        self.assertIn("does not support a repository", str(self.failureResultOf(created, UsageError).value))


class SlotTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = scratch(self) / "slots"

    def test_as_many_as_may_run(self) -> None:
        slots = [Slot(self.directory, f"session-{number}") for number in range(3)]
        slots[0].take(2)
        slots[1].take(2)
        error = self.assertRaises(TooMany, slots[2].take, 2)
        self.assertIn("max_concurrent_sessions", str(error))
        self.assertEqual(error.exit_status, 69)
        slots[0].release()
        slots[0].release()
        slots[2].take(2)
        for slot in slots:
            slot.release()
        self.assertEqual([path.name for path in self.directory.iterdir()], ["lock"])

    def test_what_a_dead_process_left_does_not_count(self) -> None:
        self.directory.mkdir(mode=0o700)
        (self.directory / "session-9").write_text("1234567\n")
        slot = Slot(self.directory, "session-1")
        slot.take(1)
        self.addCleanup(slot.release)
        self.assertFalse((self.directory / "session-9").exists())

    def test_a_lower_limit_counts_those_that_run(self) -> None:
        slots = [Slot(self.directory, f"session-{number}") for number in range(3)]
        for slot in slots:
            slot.take(5)
            self.addCleanup(slot.release)
        self.assertRaises(TooMany, Slot(self.directory, "session-9").take, 2)
