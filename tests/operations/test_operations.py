from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotAllowed, NotFound, SessionError, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.operations import LOCAL_ROLES, Principal, Role
from ironcurtain.operations.operations import Operations
from ironcurtain.session.model import State
from ironcurtain.session.session import Session
from tests.audit.doubles import scratch
from tests.session.doubles import World, make_request, request

OWNER = Principal("local:ada", LOCAL_ROLES)

NEEDED = {
    "sessions": Role.VIEW,
    "session": Role.VIEW,
    "start": Role.ADMIN,
    "send": Role.ATTACH,
    "cancel": Role.ATTACH,
    "stop": Role.ATTACH,
    "history": Role.VIEW,
    "events": Role.VIEW,
    "watch": Role.VIEW,
    "escalations": Role.VIEW,
    "decide": Role.APPROVE,
}
"""The one role that each operation asks for."""


class OperationsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.operations = Operations(self.world.manager)
        self.session = self.create()

    def create(self) -> Session:
        return self.successResultOf(Deferred.fromCoroutine(self.world.manager.create(request())))

    def ask(self) -> int:
        """:returns: the number of a new escalation."""
        core = self.world.agents[-1].core
        assert core is not None
        core.escalations.ask(make_request(core))
        return core.escalations.pending()[-1].number

    def call(self, name: str, who: Principal, target: int | str | None = None, number: int = 0) -> Deferred[Any]:
        """Call an operation with arguments that fit it."""
        target = self.session.id if target is None else target
        arguments: dict[str, tuple[Any, ...]] = {
            "sessions": (),
            "start": (request(),),
            "send": (target, "hello"),
            "events": (target, 0),
            "watch": (target, lambda: None),
            "escalations": (True,),
            "decide": (number, Outcome.DENIED),
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
                number = self.ask()
                called = self.attempt(name, Principal(f"key:{role}", frozenset({role})), number)
                if role in (needed, Role.ADMIN):
                    self.successResultOf(called)
                else:
                    error = self.failureResultOf(called, NotAllowed).value
                    self.assertEqual(str(error), f"key:{role} may not do this: it needs the role {needed}")
                    self.assertIs(self.session.state, State.READY)
                    self.assertIn(number, [it.number for it in self.session.escalations.pending()])
                self.session = self.create()

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
        for name in ("session", "send", "cancel", "history", "events", "watch"):
            with self.assertRaisesRegex(NotFound, "no session 99", msg=name):
                self.call(name, OWNER, 99)
        self.failureResultOf(self.call("stop", OWNER, 99), NotFound)

    def test_an_escalation(self) -> None:
        with self.assertRaisesRegex(NotFound, "no escalation 7"):
            self.operations.decide(OWNER, 7, Outcome.APPROVED)


class DecideTests(OperationsTestCase):
    def test_who_decided_stands_with_the_decision(self) -> None:
        decided = self.operations.decide(OWNER, self.ask(), Outcome.APPROVED)
        self.assertEqual((decided.outcome, decided.by, decided.session), ("approved", "local:ada", 1))

    def test_the_second_is_told_who_was_first(self) -> None:
        number = self.ask()
        self.operations.decide(Principal("key:bob", frozenset({Role.APPROVE})), number, Outcome.DENIED)
        with self.assertRaisesRegex(StaleDecision, "was denied by key:bob before"):
            self.operations.decide(OWNER, number, Outcome.APPROVED)

    def test_what_was_shown_must_be_what_is_decided(self) -> None:
        number = self.ask()
        with self.assertRaises(StaleDecision):
            self.operations.decide(OWNER, number, Outcome.APPROVED, "0" * 64)
        (shown,) = self.operations.escalations(OWNER)
        self.operations.decide(OWNER, number, Outcome.APPROVED, shown.digest)

    def test_escalations_of_all_sessions_by_number(self) -> None:
        numbers = [self.ask()]
        other = self.create()
        numbers.append(self.ask())
        self.operations.decide(OWNER, numbers[0], Outcome.DENIED)
        pending = self.operations.escalations(OWNER)
        self.assertEqual([(view.number, view.session) for view in pending], [(numbers[1], other.number)])
        everything = self.operations.escalations(OWNER, closed=True)
        self.assertEqual(
            [(view.number, view.outcome) for view in everything], [(numbers[0], "denied"), (numbers[1], "")]
        )

    def test_only_what_was_shown_is_decided_when_more_arrive(self) -> None:
        first = [self.ask() for _ in range(5)]
        shown = self.operations.escalations(OWNER)
        late = self.ask()
        for view in shown:
            self.operations.decide(OWNER, view.number, Outcome.APPROVED, view.digest)
        self.assertEqual([view.number for view in shown], first)
        self.assertEqual([view.number for view in self.operations.escalations(OWNER)], [late])


class SessionTests(OperationsTestCase):
    def test_stop_says_by_whom(self) -> None:
        info = self.successResultOf(self.call("stop", OWNER))
        self.assertEqual((info.state, info.reason), ("closed", "ended by local:ada"))
        self.assertEqual(self.operations.sessions(OWNER), [info])

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
