"""The sessions of all processes of a home: lists from each of them, decisions to the one that owns a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, TimeoutError
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import IronCurtainError, NotFound, Unavailable
from ironcurtain.escalation.model import Outcome
from ironcurtain.home.host_numbers import HostNumber, by_number
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.operations.api import OnEvent, ProcessApi
from ironcurtain.operations.closed_escalations import ClosedEscalations
from ironcurtain.operations.home_watch import HomeWatch
from ironcurtain.operations.model import DECISION_SECONDS, EscalationView, Name, PermissionView
from ironcurtain.process.own_programs import daemon_command
from ironcurtain.session.model import SessionInfo, SessionRequest, Ticket, Turn
from ironcurtain.terminal.model import Mode

T = TypeVar("T")

PATIENCE = 2.0
"""Time limit in seconds for an answer of a process (it answers from memory)."""

END_SECONDS = 60.0
"""Time limit in seconds for ending a session, whose parts have time limits of their own."""

_ELSEWHERE = (NotFound.code, Unavailable.code)
"""Errors of a process that does not have the requested object, or has exited."""


class HomeSource:
    """
    The sessions of all processes of a home.

    :param reactor: for watching the registry and for time.
    :param daemon: control socket of the daemon, which knows its past decisions even while it has no session.
    :param connect: returns the operations behind a control socket, and the name of its host, empty for this one.
    :param lacking: returns sentences that say which sessions no process here knows now.
    """

    log = Logger()

    def __init__(
        self,
        reactor: Any,
        registry: SessionRegistry,
        daemon: Path,
        connect: Callable[[str, str], ProcessApi],
        lacking: Callable[[], Sequence[str]],
    ) -> None:
        self._reactor, self._registry, self._daemon, self._connect = reactor, registry, daemon, connect
        self._lacking = lacking
        self._silent: list[str] = []
        self._apis: dict[str, ProcessApi] = {}
        self._owners: dict[int, ProcessApi] = {}
        self._closed: dict[ProcessApi, ClosedEscalations] = {}
        self._sessions: dict[ProcessApi, list[SessionInfo]] = {}
        self._escalations: dict[ProcessApi, list[EscalationView]] = {}

    def lacking(self) -> list[str]:
        """See :meth:`~ironcurtain.operations.console_source.ConsoleSource.lacking`."""
        return [*self._lacking(), *(f"The process of {path} does not answer." for path in self._silent)]

    async def sessions(self) -> list[SessionInfo]:
        """
        :returns: the open sessions of all processes in the registry, and closed ones, by number. Those of other hosts
            are in the registry themselves, or nobody could attach to them.
        """
        answers, entries = await self._all(lambda api: api.sessions(), self._sessions), self._entries()
        owners = {self._apis.get(entry.control_socket) for entry in entries}  # others cannot be followed yet
        mirrored = {entry.number for entry in entries if entry.host}

        def is_shown(api: ProcessApi, info: SessionInfo) -> bool:
            is_near = not isinstance(info.number, HostNumber)
            return info.state == "closed" or (api in owners if is_near else info.number in mirrored)

        found = [info for api, infos in answers for info in infos if is_shown(api, info)]
        return sorted(found, key=lambda info: info.number)

    async def escalations(self, closed: bool = False) -> list[EscalationView]:
        """:returns: the escalations of all processes, by number."""
        known = self._closed
        answers = await self._all(
            lambda api: api.escalations(closed, known[api].last if api in known else 0), self._escalations
        )
        self._owners |= {view.number: api for api, views in answers for view in views}
        if closed:
            self._closed = {api: known.get(api) or ClosedEscalations() for api, _ in answers}
            answers = [(api, self._closed[api].joined(views)) for api, views in answers]
        return sorted((view for _, views in answers for view in views), key=lambda view: view.number)

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """
        Report that an escalation was shown completely, so that it may be approved by its number.

        :raises NotFound: no process has it.
        """
        await self._owned(number, lambda api: api.shown(number, digest, calls))

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """
        Answer an escalation.

        :param keep: whether an approval covers all calls of its scope.
        :param calls: the number of equal calls that were shown.
        :raises NotFound: no process has it.
        :raises Unavailable: a process that may have it does not answer.
        """
        return await self._owned(number, lambda api: api.decide(number, outcome, digest, keep, calls))

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        """Answer a form, with the errors of :meth:`decide`."""
        return await self._owned(number, lambda api: api.answer(number, content, digest))

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """
        Deny all pending escalations, or those of one session.

        :returns: the numbers of the escalations.
        :raises NotFound: no process has the session.
        """
        if name is not None:
            session = by_number(name)
            return await self._one(lambda api: api.deny_all(session), "session", session, DECISION_SECONDS)
        answers = await self._all(lambda api: api.deny_all())
        return sorted(number for _, numbers in answers for number in numbers)

    async def stop(self, name: Name) -> SessionInfo:
        """
        End a session.

        :raises NotFound: no process has it.
        """
        session = by_number(name)
        return await self._one(lambda api: api.stop(session), "session", session, END_SECONDS)

    async def ticket(self, name: Name, mode: Mode) -> Ticket:
        """
        :returns: a ticket for attaching to a session's terminal.
        :raises NotFound: no process has it.
        """
        session = by_number(name)
        return await self._one(lambda api: api.ticket(session, mode), "session", session, DECISION_SECONDS)

    async def start(self, request: SessionRequest) -> SessionInfo:
        """
        Start a session in the daemon, and give it its task as the first message. It goes on without whoever asked.

        :raises Unavailable: no daemon runs.
        """
        if not self._daemon.exists():
            raise Unavailable(f"no daemon runs in which a session could start: {daemon_command()}")
        api = self._apis.get(str(self._daemon)) or self._connect(str(self._daemon), "")
        info = await api.start(request)
        if request.task:
            Deferred.fromCoroutine(api.send(info.id, request.task)).addErrback(self._not_answered, info.number)
        return info

    def _not_answered(self, failure: Failure, number: int) -> None:
        if failure.check(IronCurtainError, CancelledError) is None:  # else the session has told why
            self.log.failure("the task of session {number} was not answered", failure, number=number)

    async def send(self, session: int, message: str, typed: str) -> None:
        """
        Send a session a message.

        :raises NotFound: no process has it.
        """
        await self._owner(session).send(session, message, typed)

    async def withdraw(self, session: int, number: int) -> str:
        """
        Take back a message that waits.

        :raises NotFound: no process has the session, or none waits.
        """
        return await self._owner(session).withdraw(session, number)

    async def history(self, session: int) -> list[Turn]:
        """
        :returns: the messages of a session so far.
        :raises NotFound: no process has it.
        :raises Unavailable: its process does not answer.
        """
        asked = Deferred.fromCoroutine(self._owner(session).history(session))
        try:
            return await asked.addTimeout(PATIENCE, self._reactor)
        except TimeoutError:
            raise Unavailable(f"the process of session {session} does not answer") from None

    async def permissions(self) -> list[PermissionView]:
        """:returns: the kept approvals of all processes that are in force, by number."""
        answers = await self._all(lambda api: api.permissions())
        return sorted((view for _, views in answers for view in views), key=lambda view: view.number)

    async def revoke(self, number: int) -> PermissionView:
        """
        Revoke a kept approval.

        :raises NotFound: no process has such a permission.
        :raises Unavailable: a process that may have it does not answer.
        """
        return await self._one(lambda api: api.revoke(number), "permission", number, DECISION_SECONDS)

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """
        Get notified when sessions or escalations change.

        :returns: a function that ends the notifications.
        """
        watch = HomeWatch(self._reactor, self._registry.directory, self._entries, self._follow, on_change)
        watch.start()
        return watch.stop

    def activity(self, session: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events.

        :returns: a function that ends the delivery.
        """
        entry = self._entry(session)
        return (lambda: None) if entry is None else self._follow(entry, on_event, lambda: None)

    def _entry(self, session: int) -> SessionEntry | None:
        return next((entry for entry in self._entries() if entry.number == session), None)

    def _owner(self, session: int) -> ProcessApi:
        if (entry := self._entry(session)) is None:
            raise NotFound(f"there is no session {session}")
        return self._api(entry)

    async def _all(
        self, ask: Callable[[ProcessApi], Coroutine[Any, Any, T]], last: dict[ProcessApi, T] | None = None
    ) -> list[tuple[ProcessApi, T]]:
        """
        :param last: what each answered before, which counts for one that hangs: what it has did not end.
        :returns: the answers of all processes that answered. A process that died or hangs must not hide the others.
        """
        answers: list[tuple[ProcessApi, T]] = []
        questions = self._questions(ask)
        results: list[tuple[bool, Any]] = await DeferredList([asked for _, asked in questions], consumeErrors=True)
        hung = [api for (api, _), (_, result) in zip(questions, results, strict=True) if _hangs(result)]
        self._silent = [path for path, api in self._apis.items() if api in hung]
        for (api, _), (success, result) in zip(questions, results, strict=True):
            if success:
                answers.append((api, result))
            elif api in hung and last and api in last:
                answers.append((api, last[api]))
            elif result.check(IronCurtainError, TimeoutError) is None:
                result.raiseException()
        if last is not None:
            last.clear()
            last.update(answers)
        return answers

    async def _owned(self, number: int, ask: Callable[[ProcessApi], Coroutine[Any, Any, T]]) -> T:
        """
        :returns: the answer of the process that has an escalation.
        :raises Unavailable: it does not answer, and will not carry it out later.
        """
        if number not in self._owners:
            return await self._one(ask, "escalation", number, DECISION_SECONDS)
        asked = Deferred.fromCoroutine(ask(self._owners[number]))
        try:
            return await asked.addTimeout(DECISION_SECONDS, self._reactor)
        except TimeoutError:
            raise Unavailable(f"the process that has escalation {number} does not answer: is it stopped?") from None

    async def _one(
        self, ask: Callable[[ProcessApi], Coroutine[Any, Any, T]], kind: str, name: Name, patience: float = PATIENCE
    ) -> T:
        """
        Send a request to all processes of the host that has an object. Its number is unique there, and finding the
        owner in the lists would need another role.

        :param kind: of object, for error messages.
        :returns: the answer of the process that has it.
        """
        what = f"{kind} {name}"
        asked = [question for _, question in self._questions(ask, patience, name)]
        answers: Any = asked and await DeferredList(asked, fireOnOneCallback=True, consumeErrors=True)
        if isinstance(answers, tuple):  # the first that has it; one that hangs is not waited for
            return answers[0]  # type: ignore[no-any-return]
        failures = [failure for _, failure in answers]
        for failure in failures:
            if failure.check(TimeoutError) is None and getattr(failure.value, "code", "") not in _ELSEWHERE:
                failure.raiseException()
        if any(failure.check(TimeoutError) for failure in failures):
            raise Unavailable(f"a process that may have {what} does not answer: check whether it is still there")
        if isinstance(name, HostNumber) and not asked:
            raise Unavailable(f"{name.host} is not reached now: see 'ironcurtain fleet status'")
        raise NotFound(f"there is no {what}")

    def _questions(
        self,
        ask: Callable[[ProcessApi], Coroutine[Any, Any, T]],
        patience: float = PATIENCE,
        name: Name | None = None,
    ) -> list[tuple[ProcessApi, Deferred[T]]]:
        """
        :param name: ask only processes of the host that has what is named.
        :returns: each process, and what it is asked.
        """
        entries = self._entries()
        sockets = {entry.control_socket: entry.host for entry in entries}
        paths = {os.path.realpath(socket) for socket in sockets}  # the home can have several paths
        if self._daemon.exists() and os.path.realpath(self._daemon) not in paths:
            sockets[str(self._daemon)] = ""
        self._apis = {path: self._apis.get(path) or self._connect(path, sockets[path]) for path in sorted(sockets)}
        host = _host_of(name, entries)
        return [
            (api, Deferred.fromCoroutine(ask(api)).addTimeout(patience, self._reactor))
            for path, api in self._apis.items()
            if host in (None, sockets[path])
        ]

    def _api(self, entry: SessionEntry) -> ProcessApi:
        return self._apis.get(entry.control_socket) or self._connect(entry.control_socket, entry.host)

    def _entries(self) -> list[SessionEntry]:
        return [entry for entry in self._registry.live() if entry.control_socket]

    def _follow(self, entry: SessionEntry, on_event: OnEvent, lost: Callable[[], None]) -> Callable[[], None]:
        """:param lost: called if the session cannot be followed."""
        api = self._api(entry)
        following = Deferred.fromCoroutine(api.follow(entry.session_id, 0, on_event))
        stops: list[Callable[[], None]] = []

        def begun(stop: Callable[[], None]) -> None:
            stops.append(stop)

        def failed(failure: Failure) -> None:
            if failure.check(CancelledError, IronCurtainError) is None:
                self.log.failure("session {number} cannot be followed", failure, number=entry.number)
            lost()

        following.addCallbacks(begun, failed)

        def stop() -> None:
            if stops:
                stops.pop()()
            else:
                following.cancel()

        return stop


def _hangs(result: object) -> bool:
    return isinstance(result, Failure) and result.check(TimeoutError) is not None


def _host_of(name: Name | None, entries: Iterable[SessionEntry]) -> str | None:
    """
    :param name: a number, or the id of a session. That of a session here is never taken for one of another host.
    :returns: the host that has it, empty for this one; ``None``: not known.
    """
    if isinstance(name, int):
        return name.host if isinstance(name, HostNumber) else ""
    hosts = {entry.host for entry in entries if entry.session_id == name}
    return "" if "" in hosts else None
