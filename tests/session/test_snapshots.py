"""Snapshots of a session's workspace: when they are taken, what is told, and the undo of a session that runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred

from ironcurtain.errors import SessionError
from ironcurtain.home.sections import UndoSettings
from ironcurtain.project.snapshot import SnapshotHead, Snapshots
from ironcurtain.session import events
from ironcurtain.session.model import State
from ironcurtain.session.parts import Core
from ironcurtain.session.snapshots import UndoReport, inside
from tests.audit.doubles import ManualThread, scratch
from tests.session.doubles import Part, request
from tests.session.test_session import SessionTestCase


class Snapshotted(Part):
    """A project that only takes snapshots."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core = core

    async def settled(self) -> None:
        """Nothing is listed."""

    async def before_turn(self, turn: int | None) -> None:
        """Take a snapshot."""
        await self.core.snapshots.take(self.core.workspace, [str(self.core.workspace / "hidden")], turn)


class SnapshotTestCase(SessionTestCase):
    def start(self, task: str = "", **changes: Any) -> Any:
        self.kind = replace(self.world.kind, make_project=Snapshotted)
        self.world.manager._kinds = {"plain": self.kind}
        settings = msgspec.structs.replace(self.world.services.settings, undo=UndoSettings(**changes))
        self.world.manager.services = replace(self.world.services, settings=settings)
        return super().start(task)

    @property
    def heads(self) -> list[SnapshotHead]:
        return Snapshots(self.session.paths.snapshots).heads()

    def notices(self) -> list[str]:
        return [event.text for event in self.seen(events.Notice) if isinstance(event, events.Notice)]

    def undo(self, number: int) -> UndoReport:
        return self.successResultOf(Deferred.fromCoroutine(self.session.undo(number, "local:ada")))

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.session.paths.audit.read_text().splitlines())
        return [record for record in lines if record["kind"] in kinds]


class TurnTests(SnapshotTestCase):
    def test_one_before_each_turn_which_is_recorded(self) -> None:
        for message in ("one", "two"):
            self.successResultOf(self.session.send(message))
        kinds = [(head.turn, str(head.kind)) for head in self.heads]
        self.assertEqual(kinds, [(1, "turn"), (1, "end"), (2, "turn"), (2, "end")])
        recorded = [(record["number"], record["turn"]) for record in self.records("snapshot")]
        self.assertEqual(recorded, [(1, 1), (3, 2)])

    def test_the_agent_gets_its_message_when_it_is_done(self) -> None:
        thread = ManualThread()
        self.close()
        self.world.services = replace(self.world.services, in_thread=thread)
        self.session = self.start()
        sent = self.session.send("wait")
        self.assertEqual(self.world.agents[-1].waiting, [])
        thread.run()
        self.world.agents[-1].waiting[0].callback(None)
        self.assertNoResult(sent)
        self.assertEqual(len(self.heads), 1)
        thread.run()
        self.successResultOf(sent)
        self.assertEqual(len(self.heads), 2)

    def test_a_message_that_is_cancelled_has_an_end_too(self) -> None:
        sent = self.session.send("wait")
        self.assertTrue(self.session.cancel().cancelled)
        self.failureResultOf(sent, SessionError)
        self.assertEqual([str(head.kind) for head in self.heads], ["turn", "end"])

    def test_a_message_that_is_cancelled_meanwhile(self) -> None:
        thread = ManualThread()
        self.close()
        self.world.services = replace(self.world.services, in_thread=thread)
        self.session = self.start()
        sent = self.session.send("wait")
        self.assertTrue(self.session.cancel().cancelled)
        self.failureResultOf(sent, SessionError)
        self.assertIs(self.session.state, State.READY)
        self.assertEqual(self.world.agents[-1].waiting, [])
        thread.waiting[0][0]()
        self.assertEqual([head.failed for head in self.heads], ["it was cancelled"])

    def test_a_failure_is_told_with_its_reason_and_the_turn_goes_on(self) -> None:
        self.close()
        self.session = self.start(max_files=1)
        (self.session.workspace / "a").write_text("x")
        (self.session.workspace / "b").write_text("x")
        self.assertEqual(self.successResultOf(self.session.send("hello")).text, "you said hello")
        (told,) = self.notices()
        self.assertTrue(told.startswith("no snapshot: the workspace has more than 1 files"), told)
        self.assertFalse(self.world.agents[-1].core.snapshots.ready)  # type: ignore[union-attr]

    def test_a_store_that_cannot_be_used(self) -> None:
        self.session.paths.snapshots.symlink_to("/nowhere")
        self.successResultOf(self.session.send("hello"))
        self.assertTrue(self.notices()[0].startswith("no snapshot: "), self.notices())

    def test_none_are_taken_if_the_settings_say_so(self) -> None:
        self.close()
        self.session = self.start(turns=0)
        self.successResultOf(self.session.send("hello"))
        self.assertEqual((self.heads, self.notices()), ([], []))

    def test_what_is_left_out_is_told_once(self) -> None:
        os.mkfifo(self.session.workspace / "pipe")
        for message in ("one", "two"):
            self.successResultOf(self.session.send(message))
        self.assertEqual(
            self.notices(),
            ["the snapshot leaves out pipe (a socket, pipe or device): undo cannot restore it"],
        )

    def test_an_agent_with_a_screen_has_one_at_its_start(self) -> None:
        self.close()
        self.start()
        created = self.world.manager.create(request(terminal=(80, 24)))
        self.session = self.successResultOf(Deferred.fromCoroutine(created))
        self.assertEqual([head.turn for head in self.heads], [1])
        failure = self.failureResultOf(Deferred.fromCoroutine(self.session.undo(1, "local:ada")), SessionError)
        self.assertIn("end it first", str(failure.value))


class UndoSessionTests(SnapshotTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.file = self.session.workspace / "file"
        self.file.write_text("before")

    def work(self) -> None:
        """Let the agent write to the file, in one turn."""
        sent = self.session.send("wait")
        self.file.write_text("after")
        self.world.agents[-1].waiting[-1].callback(None)
        self.successResultOf(sent)

    def test_between_messages(self) -> None:
        self.work()
        report = self.undo(1)
        self.assertEqual((report.changed, report.removed, report.left, report.kept), (1, 0, (), True))
        self.assertEqual(report.since, ())
        self.assertEqual((self.file.read_text(), self.session.state), ("before", State.READY))
        begun, ended = self.records("undo", "undo-end")
        self.assertEqual((begun["by"], begun["turn"], ended["changed"]), ("local:ada", 1, 1))

    def test_what_a_person_changed_afterwards_is_kept_unless_asked(self) -> None:
        self.work()
        mine = self.session.workspace / "mine"
        mine.write_text("mine")
        self.file.write_text("mine, too")
        report = self.undo(1)
        self.assertEqual((report.changed, report.removed, report.since), (0, 0, ("file", "mine")))
        self.assertEqual((self.file.read_text(), mine.read_text()), ("mine, too", "mine"))
        everything = self.session.undo(1, "local:ada", everything=True)
        report = self.successResultOf(Deferred.fromCoroutine(everything))
        self.assertEqual((report.changed, report.removed, report.since), (1, 1, ()))
        self.assertEqual((self.file.read_text(), mine.exists()), ("before", False))

    def test_not_while_the_agent_works(self) -> None:
        sent = self.session.send("wait")
        self.file.write_text("after")
        self.failureResultOf(Deferred.fromCoroutine(self.session.undo(1, "local:ada")), SessionError)
        self.assertEqual(self.file.read_text(), "after")
        self.world.agents[-1].waiting[0].callback(None)
        self.successResultOf(sent)

    def test_no_message_is_worked_on_meanwhile(self) -> None:
        self.successResultOf(self.session.send("hello"))
        thread = ManualThread()
        run: Callable[..., Any] = thread
        self.patch(self.session._parts.up.snapshots, "_in_thread", run)
        undoing = Deferred.fromCoroutine(self.session.undo(1, "local:ada"))
        self.assertEqual(self.code("hello"), "SESSION_NOT_READY")
        thread.run()
        self.successResultOf(undoing)
        sent = self.session.send("hello")
        thread.run()
        thread.run()
        self.successResultOf(sent)


class InsideTests(SessionTestCase):
    def test_protected_paths_are_hidden_whether_they_exist_or_not(self) -> None:
        top = scratch(self)
        (top / "workspace/a").mkdir(parents=True)
        (top / "link").symlink_to(top / "workspace/a")
        protected = [str(top / "workspace/.env"), str(top / "link/key"), str(top / "other"), str(top)]
        self.assertEqual(inside(top / "workspace", protected), [".env", "a/key"])
