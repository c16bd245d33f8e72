"""All processes of a home as one source: news, decisions, and owners that die or hang."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.control.wire import RemoteError
from ironcurtain.errors import NotAllowed, NotFound, StaleDecision, Unavailable
from ironcurtain.escalation import Outcome, watcher
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.operations.api import OnEvent
from ironcurtain.operations.closed_escalations import REMEMBERED
from ironcurtain.operations.home_source import PATIENCE, HomeSource
from ironcurtain.operations.home_watch import GATHER_SECONDS
from ironcurtain.operations.model import DECISION_SECONDS, EscalationView, PermissionView
from ironcurtain.process.identity import identify
from ironcurtain.session.events import EscalationRaised, Stamped, StateChanged
from ironcurtain.session.model import Reply, SessionInfo, SessionRequest, Ticket, Turn, Usage
from ironcurtain.terminal.model import Mode
from tests.console.doubles import NOW, escalation, permission, session


class Owner:
    """The operations of one process."""

    def __init__(self, number: int, hangs: bool = False, dead: bool = False) -> None:
        self.number, self.hangs, self.dead = number, hangs, dead
        self.blind = False
        self.decided: list[tuple[int, Outcome, str | None]] = []
        self.revoked: list[int] = []
        self.shown_whole: list[tuple[int, str, int]] = []
        self.asked: list[tuple[bool, int]] = []
        self.unregistered: list[SessionInfo] = []
        self.past: list[EscalationView] = []
        self.gone: set[int] = set()
        self.readers: list[OnEvent] = []
        self.started: list[SessionRequest] = []
        self.messages: list[tuple[int | str, str]] = []

    async def answer(self) -> None:
        if self.dead:
            raise Unavailable("it is gone")
        if self.blind:
            raise NotAllowed("it needs the role view")
        if self.hangs:
            await Deferred()

    async def reach(self, number: int) -> None:
        if self.hangs:
            await Deferred()
        if number != self.number * 10:
            raise RemoteError("NOT_FOUND", "there is none here", 69)

    async def sessions(self) -> list[SessionInfo]:
        await self.answer()
        return [session(self.number), *self.unregistered, session(self.number + 100, state="closed")]

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        self.asked.append((closed, after))
        await self.answer()
        past = [view for view in self.past if closed and view.closing > after]
        return [*past, *(view for view in [escalation(self.number * 10)] if view.number not in self.gone)]

    async def start(self, request: SessionRequest, on_event: OnEvent = lambda stamped: None) -> SessionInfo:
        self.started.append(request)
        return session(self.number)

    async def send(self, name: int | str, message: str, typed: str = "") -> Reply:
        self.messages.append((name, message))
        raise RemoteError("SESSION", "no model answers", 1)

    async def history(self, name: int | str) -> list[Turn]:
        await self.answer()
        return [Turn(number=self.number, message="m", answer="a", usage=Usage(), timestamp="")]

    async def permissions(self) -> list[PermissionView]:
        await self.answer()
        return [permission(self.number * 10)]

    async def revoke(self, number: int) -> PermissionView:
        await self.reach(number)
        self.revoked.append(number)
        return permission(number)

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        await self.reach(number)
        self.shown_whole.append((number, digest, calls))

    async def deny_all(self, name: int | str | None = None) -> list[int]:
        await (self.answer() if name is None else self.reach(int(name) * 10))
        return [self.number * 10]

    async def stop(self, name: int | str) -> SessionInfo:
        await self.reach(int(name) * 10)
        return session(self.number, state="closed")

    async def ticket(self, name: int | str, mode: Mode) -> Ticket:
        await self.reach(int(name) * 10)
        return Ticket(session=f"{int(name):04x}", socket=f"/run/{mode.value}.sock", token="-")

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        await self.reach(number)
        if number in self.gone:
            raise StaleDecision("it has its outcome")
        self.decided.append((number, outcome, digest))
        return escalation(number, outcome=outcome.value)

    async def follow(self, name: int | str, after: int, on_event: OnEvent) -> Callable[[], None]:
        self.readers.append(on_event)
        return lambda: self.readers.remove(on_event)


class Home:
    """A registry, and the processes in it."""

    def __init__(self, clock: Any, *owners: Owner) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.registry = SessionRegistry(self.directory)
        self.owners = {f"/run/{owner.number}.sock": owner for owner in owners}
        owners_by_path = self.owners

        def connect(path: str, host: str) -> Any:
            return owners_by_path[path]

        self.daemon = self.directory / "daemon.sock"
        self.source = HomeSource(clock, self.registry, self.daemon, connect, list)
        for owner in owners:
            self.add(owner)

    def add(self, owner: Owner, path: str = "", number: int = 0, host: str = "") -> None:
        us = identify()
        path = path or f"/run/{owner.number}.sock"
        self.owners[path] = owner
        self.registry.add(
            SessionEntry(
                session_id=f"{owner.number:04x}", escalation_dir="", label="", started_at="", pid=os.getpid(),
                pid_start_time=us.start_time, boot_id=us.boot_id, number=number or owner.number,
                control_socket=path, host=host,
            )
        )  # fmt: skip

    def remove(self) -> None:
        shutil.rmtree(self.directory)


class AskingTests(SynchronousTestCase):
    """Questions go to all of them at once."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.good, self.also_good = Owner(2), Owner(1)
        self.home = Home(self.clock, self.good, self.also_good, Owner(3, dead=True))
        self.addCleanup(self.home.remove)

    def ask(self, coroutine: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def test_the_sessions_of_all_by_number(self) -> None:
        self.assertEqual([info.number for info in self.ask(self.home.source.sessions())], [1, 2, 101, 102])

    def test_session_of_another_host_is_listed_once_it_can_be_attached_to(self) -> None:
        far = HostNumber("build-3", 7)
        self.good.unregistered += [session(7, state="starting"), replace(session(7), number=far)]
        self.assertEqual([info.number for info in self.ask(self.home.source.sessions())], [1, 2, 7, 101, 102])
        self.home.add(self.good, number=far.there, host=far.host)
        self.assertEqual([info.number for info in self.ask(self.home.source.sessions())], [1, 2, 7, 101, 102, far])

    def test_a_process_that_hangs_does_not_hide_the_others(self) -> None:
        self.home.add(Owner(4, hangs=True))
        found = Deferred.fromCoroutine(self.home.source.escalations(closed=True))
        self.assertNoResult(found)
        self.clock.advance(PATIENCE)
        self.assertEqual([view.number for view in self.successResultOf(found)], [10, 20])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_decision_goes_to_the_owner_with_the_digest(self) -> None:
        self.ask(self.home.source.escalations())
        self.ask(self.home.source.decide(20, Outcome.APPROVED, "d" * 64))
        self.assertEqual((self.good.decided, self.also_good.decided), ([(20, Outcome.APPROVED, "d" * 64)], []))

    def test_what_was_shown_whole_is_told_to_the_owner(self) -> None:
        for _ in range(2):  # before and after the owner is known
            self.ask(self.home.source.shown(20, "d" * 64, 3))
            self.ask(self.home.source.escalations())
        self.assertEqual((self.good.shown_whole, self.also_good.shown_whole), ([(20, "d" * 64, 3)] * 2, []))

    def test_all_are_denied_or_those_of_one_session(self) -> None:
        self.assertEqual(self.ask(self.home.source.deny_all()), [10, 20])
        self.assertEqual(self.ask(self.home.source.deny_all(2)), [20])
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.deny_all(9)), NotFound)

    def test_a_session_is_ended_where_it_is(self) -> None:
        self.assertEqual(self.ask(self.home.source.stop(2)).number, 2)
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.stop(9)), NotFound)

    def test_a_session_is_attached_to_where_it_is_whoever_hangs(self) -> None:
        self.home.add(Owner(4, hangs=True))
        for name in (2, "2"):
            ticket = self.ask(self.home.source.ticket(name, Mode.OBSERVE))
            self.assertEqual((ticket.session, ticket.socket), ("0002", "/run/observe.sock"))
        asked = Deferred.fromCoroutine(self.home.source.ticket(4, Mode.OBSERVE))
        self.clock.advance(DECISION_SECONDS)
        self.failureResultOf(asked, Unavailable)

    def test_a_session_starts_in_the_daemon_and_gets_its_task(self) -> None:
        wanted = SessionRequest("", "look around")
        error = self.failureResultOf(Deferred.fromCoroutine(self.home.source.start(wanted)), Unavailable)
        self.assertIn("twistd ironcurtain", str(error.value))
        self.home.daemon.touch()
        self.home.owners[str(self.home.daemon)] = self.also_good
        self.assertEqual(self.ask(self.home.source.start(wanted)).number, self.also_good.number)
        self.ask(self.home.source.start(SessionRequest("codex")))
        self.assertEqual(self.also_good.started, [wanted, SessionRequest("codex")])
        self.assertEqual(self.also_good.messages, [(f"{self.also_good.number:04x}", "look around")])

    def test_what_nobody_has_cannot_be_decided(self) -> None:
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.decide(99, Outcome.DENIED, "")), NotFound)

    def test_whoever_may_only_approve_finds_the_owner(self) -> None:
        """The lists need another role than the decision."""
        self.good.blind = self.also_good.blind = True
        self.ask(self.home.source.decide(20, Outcome.APPROVED, "d" * 64))
        self.assertEqual((self.good.decided, self.also_good.decided), ([(20, Outcome.APPROVED, "d" * 64)], []))
        self.ask(self.home.source.revoke(10))
        self.assertEqual((self.good.revoked, self.also_good.revoked), ([], [10]))

    def test_a_refusal_is_the_owners(self) -> None:
        self.good.gone.add(20)
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.decide(20, Outcome.DENIED)), StaleDecision)

    def test_a_process_that_hangs_may_have_what_the_others_lack(self) -> None:
        self.home.add(Owner(4, hangs=True))
        for number, wanted in ((20, None), (40, Unavailable)):
            asked = Deferred.fromCoroutine(self.home.source.decide(number, Outcome.APPROVED))
            self.clock.advance(DECISION_SECONDS)
            if wanted is None:
                self.assertEqual(self.successResultOf(asked).number, number)
            else:
                self.failureResultOf(asked, wanted)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_messages_of_a_session_come_from_its_owner_in_time(self) -> None:
        self.home.add(Owner(4, hangs=True))
        self.assertEqual([turn.number for turn in self.ask(self.home.source.history(2))], [2])
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.history(77)), NotFound)
        asked = Deferred.fromCoroutine(self.home.source.history(4))
        self.clock.advance(PATIENCE)
        self.failureResultOf(asked, Unavailable)

    def test_message_goes_to_the_owner_and_its_failure_back(self) -> None:
        sent = Deferred.fromCoroutine(self.home.source.send(2, "go on", ""))
        self.failureResultOf(sent, RemoteError)
        self.assertEqual((self.good.messages, self.also_good.messages), ([(2, "go on")], []))

    def closes(self, owner: Owner, number: int, closing: int) -> None:
        owner.gone.add(number)
        owner.past.append(escalation(number, outcome="denied", by="ada", closing=closing))

    def all(self) -> list[tuple[int, str]]:
        return [(view.number, view.outcome) for view in self.ask(self.home.source.escalations(closed=True))]

    def test_what_has_its_outcome_is_asked_for_once(self) -> None:
        self.closes(self.good, 7, 500)
        self.closes(self.good, 3, 501)
        for _ in range(2):
            self.assertEqual(self.all(), [(3, "denied"), (7, "denied"), (10, ""), (20, "")])
        self.closes(self.good, 20, 502)
        for _ in range(2):
            self.assertEqual(self.all(), [(3, "denied"), (7, "denied"), (10, ""), (20, "denied")])
        self.assertEqual(self.good.asked, [(True, 0), (True, 501), (True, 501), (True, 502)])
        self.assertEqual({after for _, after in self.also_good.asked}, {0})

    def test_the_daemon_is_asked_also_while_it_has_no_session(self) -> None:
        daemon = self.home.owners[str(self.home.daemon)] = Owner(5)
        self.closes(daemon, 50, 500)
        self.assertNotIn((50, "denied"), self.all())
        self.home.daemon.touch()
        for _ in range(2):
            self.ask(self.home.source.sessions())
            self.assertIn((50, "denied"), self.all())
        self.assertEqual(daemon.asked, [(True, 0), (True, 500)])

    def test_the_daemon_is_asked_once_by_whichever_name(self) -> None:
        (self.home.directory / "other.sock").touch()
        self.home.daemon.symlink_to("other.sock")
        daemon = self.home.owners[str(self.home.directory / "other.sock")] = Owner(5)
        self.home.add(daemon, str(self.home.directory / "other.sock"))
        self.all()
        self.assertEqual(len(daemon.asked), 1)

    def test_an_answer_that_did_not_come_is_asked_for_again(self) -> None:
        self.closes(self.good, 7, 500)
        self.all()
        self.closes(self.good, 8, 501)
        self.good.dead = True
        self.assertEqual(self.all(), [(10, "")])
        self.good.dead = False
        self.assertEqual(self.all(), [(7, "denied"), (8, "denied"), (10, ""), (20, "")])

    def test_those_that_wait_are_asked_for_alone(self) -> None:
        self.closes(self.good, 7, 500)
        self.assertEqual([view.number for view in self.ask(self.home.source.escalations())], [10, 20])
        self.assertEqual(self.good.asked, [(False, 0)])
        self.assertIn((7, "denied"), self.all())

    def test_only_so_many_are_kept(self) -> None:
        for number in range(1000, 1000 + REMEMBERED + 1):
            self.closes(self.good, number, number)
        self.all()
        self.good.past.clear()
        found = self.all()
        self.assertEqual((found[2][0], len(found)), (1001, REMEMBERED + 2))

    def test_a_permission_is_revoked_by_its_owner(self) -> None:
        self.assertEqual([view.number for view in self.ask(self.home.source.permissions())], [10, 20])
        self.assertEqual(self.ask(self.home.source.revoke(20)).number, 20)
        self.assertEqual((self.good.revoked, self.also_good.revoked), ([20], []))
        self.failureResultOf(Deferred.fromCoroutine(self.home.source.revoke(99)), NotFound)

    def test_activity_ends_when_it_is_told_to(self) -> None:
        stop = self.home.source.activity(2, lambda stamped: None)
        self.assertEqual(len(self.good.readers), 1)
        stop()
        self.assertEqual(self.good.readers, [])
        self.home.source.activity(77, lambda stamped: None)()


class WatchTests(TestCase):
    """News come by themselves."""

    async def test_new_sessions_and_events_are_told_of(self) -> None:
        self.patch(watcher, "SCAN_SECONDS", 1000.0)
        first = Owner(1)
        home = Home(reactor, first)
        self.addCleanup(home.remove)
        waiting: list[Deferred[None]] = []

        def changed() -> None:
            told, waiting[:] = list(waiting), []
            for each in told:
                each.callback(None)

        def told() -> Deferred[None]:
            waiting.append(Deferred())
            return waiting[-1]

        stop = home.source.watch(changed)
        await told()
        self.assertEqual(len(first.readers), 1)
        second = Owner(2)
        heard = told()
        home.add(second)
        await heard
        while not second.readers:
            await told()
        heard = told()
        second.readers[0](Stamped(1, NOW, StateChanged(state="ready")))
        await heard
        home.registry.remove("0002")
        while second.readers:
            await told()
        self.assertEqual((second.readers, len(first.readers)), ([], 1))
        stop()
        self.assertEqual(first.readers, [])

    def test_an_escalation_is_told_at_once_and_other_news_are_gathered(self) -> None:
        owner, calls = Owner(1), Clock()
        home = Home(reactor, owner)
        self.addCleanup(home.remove)
        self.patch(reactor, "callLater", calls.callLater)
        changes: list[float] = []
        self.addCleanup(home.source.watch(lambda: changes.append(calls.seconds())))
        calls.advance(GATHER_SECONDS)
        raised = EscalationRaised(1, "call", "git", "push", {}, "digest", "rule", "reason", NOW, NOW + 60)
        for event in (StateChanged(state="running"), raised, StateChanged(state="ready"), StateChanged(state="closed")):
            owner.readers[0](Stamped(1, NOW, event))
            calls.advance(0)
        calls.advance(GATHER_SECONDS)
        self.assertEqual(changes, [GATHER_SECONDS, GATHER_SECONDS, 2 * GATHER_SECONDS])
