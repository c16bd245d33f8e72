from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit import chain
from ironcurtain.errors import SessionError, Unavailable
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.session import Session
from tests.audit.doubles import file_limit, open_files, scratch
from tests.session.doubles import Part, PlainAgent, PlainTools, World, request


class StartTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.before = open_files(alone=True)
        self.world = World(scratch(self))

    def create(self, wanted: SessionRequest | None = None) -> Deferred[Session]:
        return Deferred.fromCoroutine(self.world.manager.create(wanted or request()))

    def assertNothingLeft(self) -> None:
        self.assertEqual(open_files(), self.before)
        self.assertEqual(self.world.clock.getDelayedCalls(), [])
        self.assertEqual(self.world.registered(), [])
        self.assertEqual(self.world.manager.all(), [])
        for part in (*self.world.tools, *self.world.agents):
            self.assertEqual("stop" in part.calls, "up" in part.calls, part)

    def assertFailed(self, created: Deferred[Session], part: str, status: int = 1) -> None:
        error = self.failureResultOf(created, SessionError).value
        assert isinstance(error, SessionError)
        self.assertEqual((error.code, error.exit_status), ("SESSION_INIT_FAILED", status))
        self.assertIn(part, str(error))
        self.assertNothingLeft()


class FailureTests(StartTestCase):
    """Each part in turn cannot start."""

    def in_directory(self, spoil: Callable[[Path], object]) -> Deferred[Session]:
        directory = scratch(self) / "session"
        (directory / "escalations").mkdir(parents=True)
        spoil(directory)
        return self.create(request(directory=directory))

    def test_the_home(self) -> None:
        self.world.home.path.parent.joinpath("file").write_text("no directory")
        self.world.home = replace(self.world.home, path=self.world.home.path.parent / "file" / "home")
        self.world = World(scratch(self), at=self.world.home)
        self.assertFailed(self.create(), "cannot be used")

    def test_the_number(self) -> None:
        self.world.home.prepare()
        self.world.home.numbers("session").mkdir()
        self.assertFailed(self.create(), "cannot be used")

    def test_the_directory(self) -> None:
        path = scratch(self) / "file"
        path.write_text("no directory")
        self.assertFailed(self.create(request(directory=path / "session")), "the session's directory did not start")

    def test_the_description(self) -> None:
        created = self.in_directory(lambda directory: (directory / "session.json").mkdir())
        self.assertFailed(created, "the session's directory did not start")

    def test_the_log(self) -> None:
        created = self.in_directory(lambda directory: (directory / "session.log").symlink_to("elsewhere"))
        self.assertFailed(created, "the session's directory did not start")

    def test_the_audit_log(self) -> None:
        created = self.in_directory(lambda directory: (directory / "audit.jsonl").symlink_to("elsewhere"))
        self.assertFailed(created, "the audit log did not start", 74)

    def test_the_first_record(self) -> None:
        """The log can be opened, but holds no more."""
        padded = {"version": 1, "pad": "x" * 60_000}
        line = chain.make_line(1, chain.timestamp(0.0), "begin", padded, chain.START) + b"\n"
        for room in (0, 10, 250, 400):
            created = Deferred[Session]()
            with file_limit(len(line) + room):
                created = self.in_directory(lambda directory: (directory / "audit.jsonl").write_bytes(line))
            self.assertFailed(created, "the audit log did not start", 74)

    def test_the_escalation_files(self) -> None:
        created = self.in_directory(lambda directory: (directory / "escalations" / "request-1.json").mkdir())
        self.assertFailed(created, "the escalation files did not start")

    def test_the_tools(self) -> None:
        self.world.next_tools = PlainTools(trouble=Unavailable("no server"))
        self.assertFailed(self.create(), "the MCP proxy did not start: no server", 69)

    def test_the_agent(self) -> None:
        self.world.next_agent = PlainAgent(trouble=RuntimeError("no model"))
        self.assertFailed(self.create(), "the agent did not start: no model")

    def test_the_registry_entry(self) -> None:
        self.world.next_agent = PlainAgent(pause=Deferred())
        created = self.create()
        self.world.home.registry.rmdir()
        self.pause(self.world.next_agent).callback(None)
        self.assertFailed(created, "the registry entry did not start")

    def test_a_part_that_cannot_be_undone_does_not_keep_the_others(self) -> None:
        self.world.next_tools = PlainTools(stop_trouble=RuntimeError("stuck"))
        self.world.next_agent = PlainAgent(trouble=Unavailable("no model"))
        self.assertFailed(self.create(), "the agent did not start: no model", 69)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def pause(self, part: Part) -> Deferred[None]:
        assert part.pause is not None
        return part.pause


class Listed(Part):
    """A project whose workspace is listed when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: Deferred[None] = Deferred()

    async def settled(self) -> None:
        """Wait for the test."""
        await self.listed

    async def before_turn(self, turn: int | None) -> None:
        """Take no snapshot."""
        self.calls.append(f"before {turn}")


class OrderTests(StartTestCase):
    """When the workspace is listed, and when the agent starts."""

    def setUp(self) -> None:
        super().setUp()
        self.project = Listed()
        kind = replace(self.world.kind, make_project=lambda core: self.project)
        self.world.manager._kinds = {"plain": kind}

    def test_an_agent_that_works_when_it_starts_comes_after_the_list(self) -> None:
        created = self.create(request(terminal=(80, 24)))
        self.assertNoResult(created)
        self.assertEqual(self.world.agents, [])
        self.project.listed.callback(None)
        self.successResultOf(created)
        self.assertIn("up", self.world.agents[0].calls)

    def test_one_that_waits_for_messages_starts_meanwhile(self) -> None:
        created = self.create()
        self.assertIn("up", self.world.agents[0].calls)
        self.assertNoResult(created)
        self.assertEqual(self.world.registered(), [])
        self.project.listed.callback(None)
        self.successResultOf(created)

    def test_without_a_list_no_agent_in_a_terminal_starts(self) -> None:
        created = self.create(request(terminal=(80, 24)))
        self.project.listed.errback(Unavailable("too many files"))
        self.assertFailed(created, "the list of the workspace's files did not start", 69)
        self.assertEqual(self.world.agents, [])


class CancellationTests(StartTestCase):
    def waiting_for(self, part: str) -> Deferred[Session]:
        if part == "tools":
            self.world.next_tools = PlainTools(pause=Deferred())
        else:
            self.world.next_agent = PlainAgent(pause=Deferred())
        created = self.create()
        self.assertNoResult(created)
        self.assertEqual(self.world.registered(), [])
        return created

    def test_starting_can_be_cancelled(self) -> None:
        for part in ("tools", "agent"):
            created = self.waiting_for(part)
            created.cancel()
            self.failureResultOf(created, CancelledError)
            self.assertNothingLeft()

    def test_a_session_can_be_closed_while_it_starts(self) -> None:
        for part in ("tools", "agent"):
            created = self.waiting_for(part)
            (session,) = self.world.manager.all()
            self.successResultOf(Deferred.fromCoroutine(self.world.manager.close(session, "ended by ada")))
            self.assertFailed(created, "closed while it started")
            self.assertEqual(session.info.reason, "ended by ada")
            self.world.next_tools = PlainTools()

    def test_the_whole_process_can_stop_while_one_starts(self) -> None:
        for part in ("tools", "agent"):
            self.world = World(scratch(self))
            created = self.waiting_for(part)
            self.successResultOf(Deferred.fromCoroutine(self.world.manager.stop("the service ends")))
            self.assertFailed(created, "closed while it started")

    def test_a_cancel_during_the_clean_up_does_not_end_it(self) -> None:
        stopping = Deferred[None]()
        self.world.next_tools = PlainTools(stop_pause=stopping)
        self.world.next_agent = PlainAgent(trouble=Unavailable("no model"))
        created = self.create()
        created.cancel()
        self.failureResultOf(created, CancelledError, SessionError)
        stopping.callback(None)
        self.assertEqual(open_files(), self.before)
        self.assertEqual(self.world.clock.getDelayedCalls(), [])

    def test_a_message_comes_too_early(self) -> None:
        created = self.waiting_for("agent")
        (session,) = self.world.manager.all()
        with self.assertRaises(SessionError) as caught:
            session.send("hello")
        self.assertEqual(caught.exception.code, "SESSION_NOT_READY")
        created.cancel()
        self.failureResultOf(created, CancelledError)
        with self.assertRaises(SessionError) as caught:
            session.send("hello")
        self.assertEqual(caught.exception.code, "SESSION_CLOSED")


class AfterFailureTests(StartTestCase):
    def test_what_happened_can_be_read(self) -> None:
        self.world.next_agent = PlainAgent(trouble=Unavailable("no model"))
        self.failureResultOf(self.create(), SessionError)
        (directory,) = self.world.home.sessions.iterdir()
        description = json.loads((directory / "session.json").read_bytes())
        self.assertEqual(description["state"], "closed")
        self.assertEqual(description["reason"], "the agent did not start: no model")
        with open(directory / "audit.jsonl", "rb") as file:
            report = chain.verify(file)
        self.assertEqual((report.problems, report.ended), ([], True))
        self.assertEqual(os.listdir(directory / "escalations"), [])
