from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.threads import deferToThread
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.control.client import ControlClient, _Events
from ironcurtain.control.listening import listen
from ironcurtain.control.wire import RemoteError
from ironcurtain.errors import Unavailable
from ironcurtain.escalation import Outcome
from ironcurtain.operations.operations import Operations
from ironcurtain.session import events
from ironcurtain.session.events import SessionEvent, Stamped
from ironcurtain.session.model import Cancelled, Reply
from ironcurtain.terminal.model import Mode, ProgramExit
from tests.audit.doubles import scratch
from tests.control.doubles import start_owner
from tests.escalation.doubles import make_scope
from tests.session.doubles import USAGE, World, make_request, request


class Heard:
    """Keeps events, and tells who waits for one."""

    def __init__(self) -> None:
        self.events: list[Stamped] = []
        self._waiting: list[tuple[type[SessionEvent], Deferred[SessionEvent]]] = []

    def __call__(self, stamped: Stamped) -> None:
        self.events.append(stamped)
        for kind, found in self._waiting:
            if isinstance(stamped.event, kind) and not found.called:
                found.callback(stamped.event)

    def next(self, kind: type[SessionEvent]) -> Deferred[SessionEvent]:
        """:returns: fires with the next event of a kind."""
        found: Deferred[SessionEvent] = Deferred()
        self._waiting.append((kind, found))
        return found


class ClientTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.world = World(scratch(self), reactor=reactor)
        self.path = scratch(self) / "control.sock"
        self.port: IListeningPort = listen(reactor, self.path, Operations(self.world.manager))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.finish()))
        self.client = ControlClient(reactor, str(self.path))

    async def finish(self) -> None:
        await self.world.manager.stop("the end")
        self.world.watcher.stop()
        stopped = self.port.stopListening()
        if stopped is not None:
            await stopped

    async def test_a_session_from_start_to_stop(self) -> None:
        info = await self.client.start(request(task="look"))
        self.assertEqual((info.number, info.label, info.state), (1, "plain: look", "ready"))
        self.assertEqual(await self.client.sessions(), [info])
        self.assertEqual(await self.client.send(1, "hello"), Reply("you said hello", USAGE))
        self.assertEqual(await self.client.cancel(info.id), Cancelled(False))
        self.assertEqual([turn.answer for turn in await self.client.history(1)], ["you said hello"])
        self.assertEqual((await self.client.stop("1")).state, "closed")

    async def test_connections_are_not_logged(self) -> None:
        """A console asks again and again."""
        with capturedLogs() as logged:
            await self.client.sessions()
        self.assertEqual([event for event in logged if "factory" in event], [])

    async def test_a_call_is_given_up_before_there_is_a_connection(self) -> None:
        asked = Deferred.fromCoroutine(self.client.sessions())
        asked.cancel()
        await self.assertFailure(asked, CancelledError)

    async def test_a_message_is_cancelled_from_elsewhere(self) -> None:
        await self.client.start(request())
        heard = Heard()
        started = heard.next(events.TurnStarted)
        stop = await self.client.follow(1, 0, heard)
        sent = Deferred.fromCoroutine(self.client.send(1, "wait"))
        await started
        self.assertEqual(await self.client.cancel(1), Cancelled(True))
        error: Any = await self.assertFailure(sent, RemoteError)
        self.assertEqual((error.code, str(error)), ("MESSAGE_FAILED", "the message was cancelled"))
        stop()

    async def test_an_escalation_is_heard_of_and_decided(self) -> None:
        await self.client.start(request())
        heard = Heard()
        raised, closed = heard.next(events.EscalationRaised), heard.next(events.EscalationClosed)
        stop = await self.client.follow(1, 0, heard)
        sent = Deferred.fromCoroutine(self.client.send(1, "ask"))
        event = await raised
        assert isinstance(event, events.EscalationRaised)
        (view,) = await self.client.escalations()
        self.assertEqual((view.number, view.digest, view.arguments), (event.number, event.digest, event.arguments))
        await self.client.decide(view.number, Outcome.APPROVED, view.digest)
        self.assertTrue((await sent).text.startswith("approved by local:"))
        await closed
        with self.assertRaises(RemoteError) as caught:
            await self.client.decide(view.number, Outcome.DENIED)
        self.assertEqual(caught.exception.code, "STALE_DECISION")
        (known,) = await self.client.escalations(closed=True)
        self.assertEqual(await self.client.escalations(closed=True, after=known.closing - 1), [known])
        self.assertEqual(await self.client.escalations(closed=True, after=known.closing), [])
        stop()

    async def test_an_approval_is_kept_listed_and_revoked(self) -> None:
        await self.client.start(request())
        core = self.world.agents[-1].core
        assert core is not None
        asked = core.escalations.ask(make_request(core, scope=make_scope()))
        (view,) = await self.client.escalations()
        self.assertEqual(view.scope, "git.push in /srv/src and below")
        decided = await self.client.decide(view.number, Outcome.APPROVED, view.digest, keep=True)
        self.assertEqual(((await asked).outcome, decided.kept), (Outcome.APPROVED, True))
        again = await core.escalations.ask(make_request(core, scope=make_scope()))
        self.assertEqual(again.permission, view.number)
        (kept,) = await self.client.permissions()
        self.assertEqual((kept.number, kept.used, kept.scope), (view.number, 1, view.scope))
        heard = Heard()
        stop = await self.client.follow(1, 0, heard)
        revoked = heard.next(events.PermissionRevoked)
        self.assertEqual(await self.client.revoke(view.number), kept)
        event = await revoked
        assert isinstance(event, events.PermissionRevoked)
        self.assertEqual((event.number, event.scope, event.by), (kept.number, kept.scope, kept.by))
        stop()
        self.assertEqual(await self.client.permissions(), [])

    async def test_a_terminal_is_started_and_attached_to(self) -> None:
        info = await self.client.start(request(terminal=(100, 30)))
        self.assertEqual((info.terminal, info.status), (True, None))
        hub = self.world.agents[-1].terminal
        assert hub is not None
        self.assertEqual(hub.size, (100, 30))
        ticket = await self.client.ticket(info.number, Mode.OBSERVE)
        self.assertEqual((ticket.session, [ticket.socket]), (info.id, [str(path) for path in self.world.served]))
        self.world.manager.get(info.number).shared_terminal._tickets.spend(ticket.token, Mode.OBSERVE)
        with self.assertRaises(RemoteError) as caught:
            await self.client.send(info.number, "hello")
        self.assertEqual(caught.exception.code, "SESSION_NOT_READY")
        hub.ended(ProgramExit(7))
        self.assertEqual((await self.client.session(info.id)).status, 7)

    async def test_refusals_carry_code_and_exit_status(self) -> None:
        attempts: tuple[tuple[Coroutine[Any, Any, object], str, int], ...] = (
            (self.client.send(9, "x"), "NOT_FOUND", 69),
            (self.client.stop("../x"), "NOT_FOUND", 69),
            (self.client.decide(9, Outcome.APPROVED), "NOT_FOUND", 69),
            (self.client.revoke(9), "NOT_FOUND", 69),
            (self.client.follow(9, 0, Heard()), "NOT_FOUND", 69),
            (self.client.decide(9, Outcome.EXPIRED), "USAGE", 64),
        )
        for attempt, code, status in attempts:
            error: Any = await self.assertFailure(Deferred.fromCoroutine(attempt), RemoteError)
            self.assertEqual((error.code, error.exit_status), (code, status))

    async def test_who_stops_listening_hears_no_more(self) -> None:
        await self.client.start(request())
        heard = Heard()
        (await self.client.follow(1, 0, heard))()
        before = len(heard.events)
        await self.client.send(1, "hello")
        self.assertEqual(len(heard.events), before)

    async def test_nobody_there_is_unavailable(self) -> None:
        client = ControlClient(reactor, str(self.path.with_name("none.sock")))
        attempts: tuple[Coroutine[Any, Any, object], ...] = (client.sessions(), client.follow(1, 0, Heard()))
        for attempt in attempts:
            error = await self.assertFailure(Deferred.fromCoroutine(attempt), Unavailable)
            self.assertIn("none.sock does not answer", str(error))


class Says(Protocol):
    """Answers everything with the same bytes and goes."""

    data = b""

    def dataReceived(self, data: bytes) -> None:
        self.transport.write(self.data)  # type: ignore[union-attr]
        self.transport.loseConnection()  # type: ignore[union-attr]


class StrangeServerTests(TestCase):
    async def attempt(self, answer: bytes) -> Exception:
        path = scratch(self) / "s.sock"
        factory = Factory.forProtocol(type("Strange", (Says,), {"data": answer}))
        port = reactor.listenUNIX(str(path), factory)  # type: ignore[attr-defined]
        try:
            await ControlClient(reactor, str(path)).sessions()
        except Exception as e:
            return e
        finally:
            await port.stopListening()
        self.fail("it was taken for an answer")

    async def test_whoever_goes_is_unavailable(self) -> None:
        for answer in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]"):
            error = await self.attempt(answer)
            self.assertIsInstance(error, Unavailable, answer)
            self.assertNotIn("Failure", str(error))

    async def test_no_proper_answer_is_said_to_be_none(self) -> None:
        for body in (b"", b"{", b'{"error":1}', b'[{"number":"x"}]', b"\xff"):
            for status in (b"200 OK", b"500 Oops"):
                error = await self.attempt(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
                assert isinstance(error, RemoteError), (body, error)
                self.assertEqual((error.code, error.exit_status), ("PROTOCOL", 76))


class DeathTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.path = scratch(self)
        self.owner = start_owner(self.path)
        self.addCleanup(self.kill)
        assert self.owner.stdout is not None
        self.assertEqual(await deferToThread(self.owner.stdout.readline), b"listening\n")
        self.client = ControlClient(reactor, str(self.path / "control.sock"))

    def kill(self) -> None:
        if self.owner.poll() is None:
            self.owner.kill()
            self.owner.communicate()

    async def test_readers_and_senders_notice(self) -> None:
        heard = Heard()
        started = heard.next(events.TurnStarted)
        await self.client.follow(1, 0, heard)
        sent = Deferred.fromCoroutine(self.client.send(1, "wait"))
        await started
        gone = heard.next(events.StateChanged)
        self.kill()
        event = await gone
        assert isinstance(event, events.StateChanged)
        self.assertEqual((event.state, event.reason), ("closed", "the process that owned the session is gone"))
        self.assertEqual([stamped.sequence for stamped in heard.events], list(range(1, len(heard.events) + 1)))
        await self.assertFailure(sent, Unavailable)
        await self.assertFailure(Deferred.fromCoroutine(self.client.sessions()), Unavailable)


class ReaderTests(SynchronousTestCase):
    def read(self, *happened: SessionEvent) -> list[str]:
        """:returns: the states that a reader hears of until its connection is lost."""
        heard = Heard()
        reader = _Events(heard)
        for number, event in enumerate(happened, 1):
            stamped = msgspec.json.encode(Stamped(number, 1.5e9, event))
            for byte in b"id: %d\ndata: %b\n\n" % (number, stamped):
                reader.dataReceived(bytes([byte]))
        reader.connectionLost()
        return [stamped.event.state for stamped in heard.events if isinstance(stamped.event, events.StateChanged)]

    def test_the_end_is_told_once(self) -> None:
        """Even if more came after it, such as the end of the message that was cancelled."""
        closed = events.StateChanged(state="closed")
        self.assertEqual(self.read(closed, events.TurnFinished(turn=1, error="cancelled")), ["closed"])
        self.assertEqual(self.read(closed), ["closed"])
        self.assertEqual(self.read(events.StateChanged(state="ready")), ["ready", "closed"])
        self.assertEqual(self.read(), ["closed"])
