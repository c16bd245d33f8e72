from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotAllowed, NotFound, NotShown, SessionError, StaleDecision, UsageError
from ironcurtain.escalation import Outcome, Scope
from ironcurtain.escalation.form_values import Field
from ironcurtain.escalation.forms import Form
from ironcurtain.operations import LOCAL_ROLES, Principal, Role
from ironcurtain.operations.operations import Operations
from ironcurtain.project.snapshot import Snapshots
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import SessionRequest, State
from ironcurtain.session.session import Session
from ironcurtain.terminal.model import Mode
from tests.audit.doubles import scratch
from tests.escalation.doubles import make_scope
from tests.session.doubles import World, make_request, request

OWNER = Principal("local:ada", LOCAL_ROLES)

NEEDED = {
    "sessions": Role.VIEW,
    "session": Role.VIEW,
    "start": Role.ADMIN,
    "send": Role.ATTACH,
    "undo": Role.ATTACH,
    "cancel": Role.ATTACH,
    "withdraw": Role.ATTACH,
    "hold": Role.ATTACH,
    "release": Role.ATTACH,
    "join": Role.ATTACH,
    "stop": Role.ATTACH,
    "terminal": Role.ATTACH,
    "ticket": Role.ATTACH,
    "history": Role.VIEW,
    "events": Role.VIEW,
    "watch": Role.VIEW,
    "escalations": Role.VIEW,
    "shown": Role.VIEW,
    "decide": Role.APPROVE,
    "answer": Role.APPROVE,
    "deny_all": Role.APPROVE,
    "permissions": Role.VIEW,
    "revoke": Role.APPROVE,
    "reload": Role.ADMIN,
}
"""The one role that each operation asks for; to observe a terminal, ``view`` is enough."""


FORM = Form(message="Who are you?", fields=(Field(name="name", kind="text", required=True),))


class OperationsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.operations = Operations(self.world.manager)
        self.session = self.create()
        self.asked = 0
        self._screen: Session | None = None

    def create(self, terminal: tuple[int, int] | None = None) -> Session:
        wanted = request(terminal=terminal)
        return self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(wanted)))

    @property
    def screen(self) -> Session:
        """A session with a terminal, from when it is first asked for."""
        self._screen = self._screen or self.create((80, 24))
        return self._screen

    def ask(
        self, scope: Scope | None = None, session: Session | None = None, n: int | None = None, approvals: int = 1
    ) -> int:
        """:returns: the number of an escalation; of a new one, unless it is equal by ``n`` to one that waits."""
        cores = [agent.core for agent in self.world.agents if agent.core is not None]
        core = next(core for core in cores if core.id == (session or self.session).id)
        self.asked += 1
        wanted = make_request(core, {"n": self.asked if n is None else n}, scope=scope)
        core.escalations.ask(replace(wanted, approvals=approvals))
        return core.escalations.pending()[-1].number

    def ask_form(self) -> int:
        """:returns: the number of a new form."""
        core = next(agent.core for agent in self.world.agents if agent.core and agent.core.id == self.session.id)
        core.escalations.ask(replace(make_request(core), form=FORM))
        return core.escalations.pending()[-1].number

    def digest(self, number: int) -> str:
        """:returns: that of an escalation that waits; of another one something that is none."""
        found = [view.digest for view in self.operations.escalations(OWNER) if view.number == number]
        return found[0] if found else "0" * 64

    def keep(self) -> int:
        """:returns: the number of a new escalation whose approval was kept."""
        number = self.ask(make_scope(f"/srv/{len(self.session.escalations.permissions())}"))
        self.session.escalations.decide(number, Outcome.APPROVED, "ada", keep=True)
        return number

    def snapshot(self) -> int:
        """:returns: the number of a new snapshot of the session's workspace."""
        core = next(agent.core for agent in self.world.agents if agent.core and agent.core.id == self.session.id)
        self.successResultOf(Deferred.fromCoroutine(core.snapshots.take(core.workspace, (), 1)))
        return Snapshots(core.paths.snapshots).heads()[-1].number

    def call(self, name: str, who: Principal, target: int | str | None = None, number: int = 0) -> Deferred[Any]:
        """Call an operation with arguments that fit it."""
        if target is None:
            target = (self.screen if name in ("terminal", "ticket") else self.session).id
        arguments: dict[str, tuple[Any, ...]] = {
            "sessions": (),
            "start": (request(),),
            "send": (target, "hello"),
            "undo": (target, self.snapshot() if name == "undo" else 0),
            "terminal": (target, Mode.DRIVE),
            "ticket": (target, Mode.DRIVE),
            "events": (target, 0),
            "watch": (target, lambda: None),
            "escalations": (True,),
            "reload": (),
            "shown": (number, self.digest(number)),
            "decide": (number, Outcome.DENIED),
            "answer": (self.ask_form() if name == "answer" else 0, None),
            "deny_all": (),
            "permissions": (),
            "revoke": (self.keep(),) if name == "revoke" else (),
        }
        method: Callable[..., Any] = getattr(self.operations, name)
        result = method(who, *arguments.get(name, (target,))) if name != "" else None
        return Deferred.fromCoroutine(result) if inspect.iscoroutine(result) else maybeDeferred(lambda: result)


class RoleTests(OperationsTestCase):
    def test_the_table_names_every_operation(self) -> None:
        public = {name for name, _ in inspect.getmembers(Operations, inspect.isfunction) if not name.startswith("_")}
        self.assertEqual(public, set(NEEDED))

    def test_each_operation_for_each_role(self) -> None:
        for name, needed in NEEDED.items():
            for role in Role:
                number, who = self.ask(), Principal(f"key:{role}", frozenset({role}))
                if name == "withdraw" and role in (needed, Role.ADMIN):
                    self.assertRaisesRegex(NotFound, "no message waits", self.call, name, who)
                    continue
                called = self.attempt(name, who, number)
                if role in (needed, Role.ADMIN):
                    self.successResultOf(called)
                else:
                    error = self.failureResultOf(called, NotAllowed).value
                    self.assertEqual(str(error), f"key:{role} may not do this: it needs the role {needed}")
                    self.assertIs(self.session.state, State.READY)
                    self.assertIn(number, [it.number for it in self.session.escalations.pending()])
                self.session = self.create()

    def test_to_observe_a_terminal_it_is_enough_to_view(self) -> None:
        viewer = Principal("key:eve", frozenset({Role.VIEW}))
        self.assertIs(self.operations.terminal(viewer, self.screen.id, Mode.OBSERVE), self.screen.terminal)
        self.assertTrue(self.operations.ticket(viewer, 2, Mode.OBSERVE).token)
        for operation in (self.operations.terminal, self.operations.ticket):
            with self.assertRaisesRegex(NotAllowed, "it needs the role attach"):
                operation(viewer, 2, Mode.DRIVE)
        for role in (Role.ATTACH, Role.APPROVE):
            with self.assertRaisesRegex(NotAllowed, "it needs the role view"):
                self.operations.terminal(Principal("key:bob", frozenset({role})), 2, Mode.OBSERVE)

    def test_nobody_may_do_nothing(self) -> None:
        for name in NEEDED:
            self.failureResultOf(self.attempt(name, Principal("nobody", frozenset()), self.ask()), NotAllowed)

    def test_roles_are_checked_before_anything_is_looked_up(self) -> None:
        """Who may not look does not learn what there is."""
        for name in NEEDED:
            self.failureResultOf(self.attempt(name, Principal("nobody", frozenset()), 0, "no-such"), NotAllowed)

    def attempt(self, name: str, who: Principal, number: int, target: str | None = None) -> Deferred[Any]:
        try:
            return self.call(name, who, target, number)
        except NotAllowed as e:
            failed: Deferred[Any] = Deferred()
            failed.errback(e)
            return failed


class NotFoundTests(OperationsTestCase):
    def test_every_operation_on_a_session(self) -> None:
        for name in (
            "session",
            "send",
            "cancel",
            "history",
            "events",
            "watch",
            "terminal",
            "ticket",
            "hold",
            "release",
            "join",
        ):
            with self.assertRaisesRegex(NotFound, "no session 99", msg=name):
                self.call(name, OWNER, 99)
        self.failureResultOf(self.call("stop", OWNER, 99), NotFound)

    def test_an_escalation(self) -> None:
        with self.assertRaisesRegex(NotFound, "no escalation 7"):
            self.operations.decide(OWNER, 7, Outcome.APPROVED)
        with self.assertRaisesRegex(NotFound, "no escalation 7"):
            self.operations.shown(OWNER, 7, "0" * 64)


class DecideTests(OperationsTestCase):
    def test_who_decided_stands_with_the_decision(self) -> None:
        number = self.ask()
        (shown,) = self.operations.escalations(OWNER)
        decided = self.operations.decide(OWNER, number, Outcome.APPROVED, shown.digest)
        self.assertEqual((decided.outcome, decided.by, decided.session), ("approved", "local:ada", 1))

    def test_the_second_is_told_who_was_first(self) -> None:
        number = self.ask()
        self.operations.decide(Principal("key:bob", frozenset({Role.APPROVE})), number, Outcome.DENIED)
        with self.assertRaisesRegex(StaleDecision, "was denied by key:bob"):
            self.operations.decide(OWNER, number, Outcome.APPROVED)

    def test_two_principals_have_to_see_and_approve(self) -> None:
        number = self.ask(approvals=2)
        bob = Principal("bob", frozenset({Role.VIEW, Role.APPROVE}))
        (shown,) = self.operations.escalations(OWNER)
        first = self.operations.decide(OWNER, number, Outcome.APPROVED, shown.digest)
        self.assertEqual((first.outcome, first.approved_by, first.approvals), ("", ("local:ada",), 2))
        with self.assertRaisesRegex(StaleDecision, "another person"):
            self.operations.decide(OWNER, number, Outcome.APPROVED, shown.digest)
        with self.assertRaises(NotShown):
            self.operations.decide(bob, number, Outcome.APPROVED)
        (seen,) = self.operations.escalations(bob)
        self.assertEqual(seen.approved_by, ("local:ada",))
        second = self.operations.decide(bob, number, Outcome.APPROVED, seen.digest)
        self.assertEqual((second.outcome, second.by), ("approved", "local:ada and bob"))

    def test_what_was_shown_must_be_what_is_decided(self) -> None:
        number = self.ask()
        with self.assertRaises(StaleDecision):
            self.operations.decide(OWNER, number, Outcome.APPROVED, "0" * 64)
        (shown,) = self.operations.escalations(OWNER)
        self.operations.decide(OWNER, number, Outcome.APPROVED, shown.digest)

    def test_escalations_of_all_sessions_by_number(self) -> None:
        numbers = [self.ask()]
        other = self.create()
        numbers.append(self.ask(session=other))
        self.operations.decide(OWNER, numbers[0], Outcome.DENIED)
        pending = self.operations.escalations(OWNER)
        self.assertEqual([(view.number, view.session) for view in pending], [(numbers[1], other.number)])
        everything = self.operations.escalations(OWNER, closed=True)
        self.assertEqual(
            [(view.number, view.outcome) for view in everything], [(numbers[0], "denied"), (numbers[1], "")]
        )

    def test_what_was_closed_after_something(self) -> None:
        first, third = self.ask(), self.ask()
        second = self.ask(session=self.create())
        for number in (first, second, third):  # another order than that of their numbers, in two sessions
            self.operations.decide(OWNER, number, Outcome.DENIED)
        closings = {view.number: view.closing for view in self.operations.escalations(OWNER, closed=True)}
        for after, left in ((first, {second, third}), (second, {third}), (third, set())):
            found = self.operations.escalations(OWNER, closed=True, after=closings[after])
            self.assertEqual({view.number for view in found}, left)
        waits = self.ask()
        (found_waiting,) = self.operations.escalations(OWNER, closed=True, after=closings[third])
        self.assertEqual((found_waiting.number, found_waiting.closing), (waits, 0))

    def test_only_what_was_shown_is_decided_when_more_arrive(self) -> None:
        first = [self.ask() for _ in range(5)]
        shown = self.operations.escalations(OWNER)
        late = self.ask()
        for view in shown:
            self.operations.decide(OWNER, view.number, Outcome.APPROVED, view.digest)
        self.assertEqual([view.number for view in shown], first)
        self.assertEqual([view.number for view in self.operations.escalations(OWNER)], [late])


class PermissionTests(OperationsTestCase):
    """Approvals that are kept."""

    def test_who_kept_what_in_which_session(self) -> None:
        number = self.ask(make_scope())
        (shown,) = self.operations.escalations(OWNER)
        self.assertEqual((shown.scope, shown.kept), ("git.push in /srv/src and below", False))
        decided = self.operations.decide(OWNER, number, Outcome.APPROVED, shown.digest, keep=True)
        self.assertTrue(decided.kept)
        (kept,) = self.operations.permissions(OWNER)
        self.assertEqual((kept.number, kept.session, kept.session_id), (number, 1, self.session.id))
        self.assertEqual((kept.by, kept.scope, kept.used), ("local:ada", shown.scope, 0))

    def test_revoked_says_what_stands_no_more(self) -> None:
        number = self.keep()
        self.assertEqual(self.operations.revoke(OWNER, number).number, number)
        self.assertEqual(self.operations.permissions(OWNER), [])
        with self.assertRaisesRegex(NotFound, f"no kept approval {number} here: see 'ironcurtain permissions'"):
            self.operations.revoke(OWNER, number)

    def test_what_cannot_be_kept_waits(self) -> None:
        number = self.ask()
        with self.assertRaises(UsageError):
            self.operations.decide(OWNER, number, Outcome.APPROVED, self.digest(number), keep=True)
        self.assertEqual([view.number for view in self.operations.escalations(OWNER)], [number])

    def test_it_ends_with_the_session(self) -> None:
        self.keep()
        self.successResultOf(self.call("stop", OWNER))
        self.assertEqual(self.operations.permissions(OWNER), [])

    def test_it_is_of_one_session(self) -> None:
        self.keep()
        self.session = self.create()
        number = self.ask(make_scope())
        self.assertEqual([view.number for view in self.operations.escalations(OWNER)], [number])


class SessionTests(OperationsTestCase):
    def test_stop_says_by_whom(self) -> None:
        info = self.successResultOf(self.call("stop", OWNER))
        self.assertEqual((info.state, info.reason), ("closed", "ended by local:ada"))
        self.assertEqual(self.operations.sessions(OWNER), [info])

    def test_what_is_held_ends_with_its_holder_unless_it_was_released(self) -> None:
        self.create(), self.create()
        for number, let_be in enumerate((self.operations.release, self.operations.join), 1):
            self.operations.hold(OWNER, number)
            self.assertEqual(let_be(OWNER, number).state, "ready")
            self.operations.hold(OWNER, number)  # late: whoever started it was slower than whoever joined it
            self.assertEqual(self.stopped_if_held(number), "ready")
        self.assertEqual(self.stopped_if_held(3), "ready")
        self.operations.hold(OWNER, 3)
        self.assertEqual(self.stopped_if_held(3), "closed")

    def stopped_if_held(self, number: int) -> str:
        """:returns: the state of a session after that."""
        return self.successResultOf(Deferred.fromCoroutine(self.operations.stop(OWNER, number, held=True))).state

    def test_what_only_a_command_can_run(self) -> None:
        def refuse(wanted: SessionRequest) -> None:
            raise UsageError(f"no {wanted.kind} from elsewhere")

        self.successResultOf(self.call("stop", OWNER))
        kinds = {"plain": replace(self.world.kind, check_remote=refuse)}
        manager = SessionManager(kinds, self.world.services, lambda request: request.workspace or Path())
        before = sorted(self.world.home.path.rglob("*"))
        for wanted in (request(), SessionRequest("", resume=self.session.id)):
            started = Deferred.fromCoroutine(Operations(manager).start(OWNER, wanted))
            self.assertEqual(str(self.failureResultOf(started, UsageError).value), "no plain from elsewhere")
        self.assertEqual(sorted(self.world.home.path.rglob("*")), before)

    def test_a_message_to_a_closed_session(self) -> None:
        self.successResultOf(self.call("stop", OWNER))
        with self.assertRaises(SessionError):
            self.call("send", OWNER)

    def test_a_reader_that_fails_does_not_harm_the_session(self) -> None:
        def fail() -> None:
            raise RuntimeError("no reader")

        woken: list[int] = []
        self.operations.watch(OWNER, 1, fail)
        stop = self.operations.watch(OWNER, 1, lambda: woken.append(1))
        self.assertEqual(self.successResultOf(self.call("send", OWNER)).text, "you said hello")
        self.assertIs(self.session.state, State.READY)
        stop()
        heard = len(woken)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), heard)
        self.successResultOf(self.call("send", OWNER))
        self.flushLoggedErrors(RuntimeError)
        self.assertEqual(len(woken), heard)


class PrincipalTests(SynchronousTestCase):
    def test_admin_may_do_everything(self) -> None:
        for role in Role:
            Principal("root", frozenset({Role.ADMIN})).require(role)

    def test_the_owner_may_do_everything(self) -> None:
        self.assertEqual(LOCAL_ROLES, frozenset(Role))
