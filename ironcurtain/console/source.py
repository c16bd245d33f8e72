"""The data source of a console: the processes of a home that own sessions. Decisions are sent to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred, DeferredList, TimeoutError
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.console.closed_escalations import ClosedEscalations
from ironcurtain.errors import IronCurtainError, NotFound, Unavailable
from ironcurtain.escalation.model import Outcome
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.operations.api import OnEvent, OversightApi, SessionApi
from ironcurtain.operations.model import EscalationView, Name, PermissionView
from ironcurtain.session.events import (
    EscalationApproved,
    EscalationClosed,
    EscalationCounted,
    EscalationRaised,
    Missed,
    PermissionRevoked,
    Stamped,
    StateChanged,
)
from ironcurtain.session.model import SessionInfo, SessionRequest

T = TypeVar("T")

GATHER_SECONDS = 0.02
"""
Seconds for which changes are collected before a redraw; too short to be noticed. A new escalation is reported at once,
since a frame drawn just before would delay it.
"""

PATIENCE = 2.0
"""Time limit in seconds for an answer of a process (it answers from memory)."""

END_SECONDS = 60.0
"""Time limit in seconds for ending a session, whose parts have time limits of their own."""

NEWS = (
    StateChanged,
    EscalationRaised,
    EscalationCounted,
    EscalationApproved,
    EscalationClosed,
    PermissionRevoked,
    Missed,
)
"""Events that change the lists."""


_ELSEWHERE = (NotFound.code, Unavailable.code)
"""Errors of a process that does not have the requested object, or has exited."""


class ConsoleSource(OversightApi, Protocol):
    """What a console needs: lists, decisions and notification of changes."""

    async def start(self, request: SessionRequest) -> SessionInfo:
        """Start a session, and give it its task as the first message."""

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """
        Get notified when something may have changed.

        :returns: a function that ends the notifications.
        """

    def activity(self, session: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events, beginning with the past ones.

        :returns: a function that ends the delivery.
        """


class HomeSource:
    """
    The sessions of all processes of a home.

    :param reactor: for watching the registry and for time.
    :param daemon: control socket of the daemon, which knows its past decisions even while it has no session.
    :param connect: returns the operations behind a control socket.
    """

    log = Logger()

    def __init__(
        self, reactor: Any, registry: SessionRegistry, daemon: Path, connect: Callable[[str], SessionApi]
    ) -> None:
        self._reactor, self._registry, self._daemon, self._connect = reactor, registry, daemon, connect
        self._apis: dict[str, SessionApi] = {}
        self._owners: dict[int, SessionApi] = {}
        self._closed: dict[SessionApi, ClosedEscalations] = {}

    async def sessions(self) -> list[SessionInfo]:
        """:returns: the open sessions of all processes in the registry, and closed ones, by number."""
        answers = await self._all(lambda api: api.sessions())
        owners = {self._apis.get(entry.control_socket) for entry in self._entries()}  # others cannot be followed yet
        found = [info for api, infos in answers for info in infos if api in owners or info.state == "closed"]
        return sorted(found, key=lambda info: info.number)

    async def escalations(self, closed: bool = False) -> list[EscalationView]:
        """:returns: the escalations of all processes, by number."""
        known = self._closed
        answers = await self._all(lambda api: api.escalations(closed, known[api].last if api in known else 0))
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
            return await self._one(lambda api: api.deny_all(name), f"session {name}")
        answers = await self._all(lambda api: api.deny_all())
        return sorted(number for _, numbers in answers for number in numbers)

    async def stop(self, name: Name) -> SessionInfo:
        """
        End a session.

        :raises NotFound: no process has it.
        """
        return await self._one(lambda api: api.stop(name), f"session {name}", END_SECONDS)

    async def start(self, request: SessionRequest) -> SessionInfo:
        """
        Start a session in the daemon, and give it its task as the first message. It goes on without whoever asked.

        :raises Unavailable: no daemon runs.
        """
        if not self._daemon.exists():
            raise Unavailable("no daemon runs in which a session could start: twistd ironcurtain")
        daemon = str(self._daemon)
        api = self._apis.get(daemon) or self._connect(daemon)
        info = await api.start(request)
        if request.task:
            Deferred.fromCoroutine(api.send(info.id, request.task)).addErrback(self._not_answered, info.number)
        return info

    def _not_answered(self, failure: Failure, number: int) -> None:
        if failure.check(IronCurtainError, CancelledError) is None:  # else the session has told why
            self.log.failure("the task of session {number} was not answered", failure, number=number)

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
        return await self._one(lambda api: api.revoke(number), f"permission {number}")

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """
        Get notified when sessions or escalations change.

        :returns: a function that ends the notifications.
        """
        watch = _Watch(self._reactor, self._registry.directory, self._entries, self._follow, on_change)
        watch.start()
        return watch.stop

    def activity(self, session: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events.

        :returns: a function that ends the delivery.
        """
        entry = next((entry for entry in self._entries() if entry.number == session), None)
        if entry is None:
            return lambda: None
        return self._follow(entry, on_event, lambda: None)

    async def _all(self, ask: Callable[[SessionApi], Coroutine[Any, Any, T]]) -> list[tuple[SessionApi, T]]:
        """
        :returns: the answers of all processes that answered. A process that died or hangs must not hide the others.
        """
        answers: list[tuple[SessionApi, T]] = []
        for api, success, result in await self._ask(ask):
            if success:
                answers.append((api, result))
            elif result.check(IronCurtainError, TimeoutError) is None:
                result.raiseException()
        return answers

    async def _owned(self, number: int, ask: Callable[[SessionApi], Coroutine[Any, Any, T]]) -> T:
        """:returns: the answer of the process that has an escalation."""
        if number in self._owners:
            return await ask(self._owners[number])
        return await self._one(ask, f"escalation {number}")

    async def _one(
        self, ask: Callable[[SessionApi], Coroutine[Any, Any, T]], what: str, patience: float = PATIENCE
    ) -> T:
        """
        Send a request to all processes. Numbers are unique in a home, and finding the owner in the lists would need
        another role.

        :param what: name of the object, for error messages.
        :returns: the answer of the process that has it.
        """
        answers = await self._ask(ask, patience)
        for _, success, result in answers:
            if success:
                answer: T = result
                return answer
        failures = [failure for _, _, failure in answers]
        for failure in failures:
            if failure.check(TimeoutError) is None and getattr(failure.value, "code", "") not in _ELSEWHERE:
                failure.raiseException()
        if any(failure.check(TimeoutError) for failure in failures):
            raise Unavailable(f"a process that may have {what} does not answer: check whether it is still there")
        raise NotFound(f"there is no {what}")

    async def _ask(
        self, ask: Callable[[SessionApi], Coroutine[Any, Any, T]], patience: float = PATIENCE
    ) -> list[tuple[SessionApi, bool, Any]]:
        """:returns: each process, whether it answered, and its answer or the failure."""
        sockets = {entry.control_socket for entry in self._entries()}
        paths = {os.path.realpath(socket) for socket in sockets}  # the home can have several paths
        if self._daemon.exists() and os.path.realpath(self._daemon) not in paths:
            sockets.add(str(self._daemon))
        self._apis = {socket: self._apis.get(socket) or self._connect(socket) for socket in sorted(sockets)}
        apis = list(self._apis.values())
        asked = [Deferred.fromCoroutine(ask(api)).addTimeout(patience, self._reactor) for api in apis]
        results: list[tuple[bool, Any]] = await DeferredList(asked, consumeErrors=True)
        return [(api, success, result) for api, (success, result) in zip(apis, results, strict=True)]

    def _entries(self) -> list[SessionEntry]:
        return [entry for entry in self._registry.live() if entry.control_socket]

    def _follow(self, entry: SessionEntry, on_event: OnEvent, lost: Callable[[], None]) -> Callable[[], None]:
        """:param lost: called if the session cannot be followed."""
        api = self._apis.get(entry.control_socket) or self._connect(entry.control_socket)
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


class _Watch:
    """
    Watches the registry and every session in it.

    :param follow: begins to follow a session, and returns a function that ends it.
    """

    def __init__(
        self,
        reactor: Any,
        directory: Any,
        entries: Callable[[], list[SessionEntry]],
        follow: Callable[[SessionEntry, OnEvent, Callable[[], None]], Callable[[], None]],
        on_change: Callable[[], None],
    ) -> None:
        self._reactor, self._directory, self._entries = reactor, directory, entries
        self._follow, self._on_change = follow, on_change
        self._followed: dict[str, Callable[[], None]] = {}
        self._pending: IDelayedCall | None = None
        self._watcher: DirectoryWatcher | None = None

    def start(self) -> None:
        """Start watching, and notify once."""
        self._watcher = DirectoryWatcher(self._reactor)
        self._watcher.add(self._directory, self._look)
        self._look()

    def stop(self) -> None:
        """Stop watching."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()
        if self._pending is not None and self._pending.active():
            self._pending.cancel()
        followed, self._followed = self._followed, {}
        for stop in followed.values():
            stop()

    def _look(self) -> None:
        entries = {entry.session_id: entry for entry in self._entries()}
        for name in self._followed.keys() - entries.keys():
            self._followed.pop(name)()
        for name in entries.keys() - self._followed.keys():
            self._followed[name] = lambda: None  # following may fail before it returns its end function
            stop = self._follow(entries[name], self._heard, partial(self._lost, name))
            if name in self._followed:
                self._followed[name] = stop
        self._schedule()

    def _lost(self, name: str) -> None:
        """Forget a session; the next look at the registry tries again."""
        self._followed.pop(name, None)

    def _heard(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, NEWS):
            self._schedule(at_once=isinstance(stamped.event, EscalationRaised))

    def _schedule(self, at_once: bool = False) -> None:
        if self._watcher is None:
            return
        if self._pending is None:
            self._pending = self._reactor.callLater(0 if at_once else GATHER_SECONDS, self._notify)
        elif at_once:
            self._pending.reset(0)

    def _notify(self) -> None:
        self._pending = None
        self._on_change()
