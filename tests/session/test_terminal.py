from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotAllowed, SessionError, UsageError
from ironcurtain.escalation import Outcome
from ironcurtain.session import events
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.parts import SessionKind
from ironcurtain.session.session import Session
from ironcurtain.session.terminal import MOST, TICKET_SECONDS, Tickets
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.wire import Hello, line, read_welcome
from tests.audit.doubles import scratch
from tests.session.doubles import World, make_request, request
from tests.terminal.doubles import Eye


class TicketTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.now = 0.0
        self.tickets = Tickets(lambda: self.now)

    def test_a_token_is_good_once(self) -> None:
        token = self.tickets.issue("ada", Mode.DRIVE)
        self.assertEqual(self.tickets.spend(token, Mode.DRIVE), "ada")
        self.assertRaises(NotAllowed, self.tickets.spend, token, Mode.DRIVE)

    def test_a_token_is_good_for_its_mode_only_and_gone_with_the_attempt(self) -> None:
        token = self.tickets.issue("ada", Mode.OBSERVE)
        self.assertRaises(NotAllowed, self.tickets.spend, token, Mode.DRIVE)
        self.assertRaises(NotAllowed, self.tickets.spend, token, Mode.OBSERVE)

    def test_a_token_grows_old(self) -> None:
        young, old = self.tickets.issue("ada", Mode.DRIVE), self.tickets.issue("ada", Mode.DRIVE)
        self.now = TICKET_SECONDS
        self.tickets.spend(young, Mode.DRIVE)
        self.now += 0.1
        self.assertRaises(NotAllowed, self.tickets.spend, old, Mode.DRIVE)

    def test_tokens_that_nobody_uses_are_forgotten(self) -> None:
        tokens = [self.tickets.issue("ada", Mode.DRIVE) for _ in range(MOST + 1)]
        self.assertEqual(len(set(tokens)), MOST + 1)
        self.assertRaises(NotAllowed, self.tickets.spend, tokens[0], Mode.DRIVE)
        self.tickets.spend(tokens[1], Mode.DRIVE)


class TerminalTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.session = self.start(terminal=(80, 24))
        hub = self.session.terminal
        assert hub is not None
        self.hub: Hub = hub

    def start(self, **options: Any) -> Session:
        return self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request(**options))))

    def close(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.session.close("enough")))

    def look(self, mode: Mode = Mode.DRIVE) -> Eye:
        """:returns: a viewer of this process, who has forgotten the screen as it was."""
        eye = Eye()
        self.hub.attach(eye, mode, 80, 24)
        eye.new()
        return eye

    def attach(self, token: str, mode: Mode = Mode.DRIVE, session: str = "") -> StringTransport:
        """:returns: what a viewer of another process is told."""
        (factory,) = self.world.served.values()
        protocol, transport = factory.buildProtocol(None), StringTransport()  # type: ignore[arg-type]
        assert protocol is not None
        protocol.makeConnection(transport)
        protocol.dataReceived(line(Hello(session or self.session.id, mode, 90, 30, token)))
        return transport

    def audit(self, kind: str) -> list[dict[str, Any]]:
        """:returns: all records of a kind."""
        records = map(json.loads, self.session.paths.audit.read_text().splitlines())
        return [record for record in records if record["kind"] == kind]


class StateTests(TerminalTestCase):
    def test_it_says_that_it_has_a_terminal(self) -> None:
        self.assertEqual((self.session.info.terminal, self.session.info.status), (True, None))
        self.assertFalse(self.start().info.terminal)

    def test_it_takes_no_messages(self) -> None:
        with self.assertRaisesRegex(SessionError, "ironcurtain attach 1") as caught:
            self.session.send("hello")
        self.assertEqual(caught.exception.code, "SESSION_NOT_READY")

    def test_the_status_of_its_program_is_told_and_kept(self) -> None:
        self.hub.ended(ProgramExit(7, "exit status 7"))
        self.close()
        self.assertEqual(self.session.info.status, 7)
        kept = msgspec.json.decode(self.session.paths.snapshot.read_bytes(), type=SessionInfo)
        self.assertEqual((kept.status, kept.terminal, kept.reason), (7, True, "enough"))

    def test_a_kind_without_a_screen_is_refused_before_anything_is_made(self) -> None:
        world = World(scratch(self))
        kind = SessionKind("plain", world._make_tools, world._make_agent)
        manager = SessionManager({"plain": kind}, world.services, lambda request: request.workspace or Path())
        created = Deferred.fromCoroutine(manager.create(request(terminal=(80, 24))))
        error = self.failureResultOf(created, UsageError).value
        self.assertEqual(str(error), "plain cannot run in a terminal: it has no interactive interface")
        self.assertFalse(world.home.path.exists())


class AttachTests(TerminalTestCase):
    def test_in_this_process_and_on_record(self) -> None:
        self.assertIs(self.session.shared_terminal.attach("local:ada", Mode.OBSERVE), self.hub)
        self.assertEqual([(r["by"], r["mode"]) for r in self.audit("attach")], [("local:ada", "observe")])

    def test_from_another_process_with_a_token(self) -> None:
        ticket = self.session.shared_terminal.ticket("key:bob", Mode.DRIVE)
        self.assertEqual(ticket.socket, str(next(iter(self.world.served))))
        self.assertEqual(self.audit("attach"), [])
        self.assertEqual(read_welcome(self.attach(ticket.token).value().partition(b"\n")[0]).code, "")
        self.assertEqual((self.hub.viewers, self.hub.size), (1, (90, 30)))
        self.assertEqual([record["by"] for record in self.audit("attach")], ["key:bob"])

    def test_not_with_a_token_that_is_used_or_for_another_session(self) -> None:
        token = self.session.shared_terminal.ticket("key:bob", Mode.DRIVE).token
        self.assertEqual(read_welcome(self.attach(token, session="other").value().rstrip()).code, "NOT_FOUND")
        self.attach(token)
        for wrong in (token, "", "guessed"):
            self.assertEqual(read_welcome(self.attach(wrong).value().rstrip()).code, "NOT_ALLOWED")
        self.assertEqual((self.hub.viewers, len(self.audit("attach"))), (1, 1))

    def test_not_where_there_is_no_terminal_or_none_any_more(self) -> None:
        plain = self.start()
        with self.assertRaisesRegex(SessionError, "has no terminal: it takes messages"):
            _ = plain.shared_terminal
        self.close()
        with self.assertRaisesRegex(SessionError, "session 1 is closed"):
            _ = self.session.shared_terminal


class JoinTests(TerminalTestCase):
    def test_who_joins_a_conversation_is_on_record(self) -> None:
        plain = self.start()
        plain.ends_with_owner = True
        plain.join("local:bob")
        records = map(json.loads, plain.paths.audit.read_text().splitlines())
        attached = [(r["by"], r["mode"]) for r in records if r["kind"] == "attach"]
        self.assertEqual(attached, [("local:bob", "drive")])
        self.assertFalse(plain.ends_with_owner)

    def test_not_where_there_is_a_terminal_or_nothing_any_more(self) -> None:
        with self.assertRaisesRegex(SessionError, "has a terminal, and no conversation"):
            self.session.join("local:bob")
        self.close()
        with self.assertRaisesRegex(SessionError, "session 1 is closed"):
            self.session.join("local:bob")
        self.assertEqual(self.audit("attach"), [])

    def test_not_while_it_starts(self) -> None:
        refused: list[str] = []

        def made(session: Session) -> None:
            with self.assertRaises(SessionError) as caught:
                session.join("local:bob")
            refused.append(str(caught.exception))

        self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request(), made=made)))
        self.assertEqual(refused, ["session 2 is still starting"])


class TellTests(TerminalTestCase):
    def test_an_escalation_rings_at_every_viewer(self) -> None:
        eyes = [self.look(), self.look(Mode.OBSERVE)]
        core = self.world.agents[0].core
        assert core is not None
        core.escalations.ask(make_request(core))
        for eye in eyes:
            self.assertEqual(eye.new(), b"\x1b]9;escalation 1: git.push\x1b\\\x07")
        self.session.escalations.decide(1, Outcome.DENIED, "ada")
        self.assertEqual(eyes[0].new(), b"")

    def test_what_else_happens_shows_nothing(self) -> None:
        eye, core = self.look(), self.world.agents[0].core
        assert core is not None
        core.emit(events.ToolCallRaised(call_id="c1", server="git", tool="push", arguments="remote=origin"))
        self.assertEqual(eye.new(), b"")

    def test_after_the_program_nobody_is_called(self) -> None:
        self.hub.ended(ProgramExit(0))
        core = self.world.agents[0].core
        assert core is not None
        core.emit(events.ProxyDown(proxy="MCP", reason="gone"))
