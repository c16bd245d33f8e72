"""
Find the sessions of all processes of a home.

A process is found through its sessions' registry entries, and through its socket's usual path, since a session that is
starting has no entry yet.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ironcurtain.control.calls import ControlCalls, Ended
from ironcurtain.errors import IronCurtainError, NotFound, ProtocolViolation, Unavailable
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionRegistry
from ironcurtain.operations.choosing import newest
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.process.identity import identify
from ironcurtain.session.elsewhere import begins, several
from ironcurtain.session.model import SessionInfo

C = TypeVar("C", bound=ControlCalls)
T = TypeVar("T")

OWNER_SECONDS = 10.0
"""Time limit in seconds for one process's answer."""

HOST_SECONDS = 2.0
"""The same for one of another host, if all are asked: it may be stopped, or may lie."""


class Owners(ABC, Generic[C]):
    """
    All processes of a home that own sessions now.

    :param reach: returns the client of a process: of the path of its socket, and of the name of its host.
    """

    def __init__(self, home: Home, reach: Callable[[str, str], C]) -> None:
        entries = SessionRegistry(home.registry).live()
        self._daemon = str(home.daemon_socket)
        found = {self._daemon: ""} if home.daemon_socket.exists() else {}
        found |= {str(path): "" for path, pid in home.owner_sockets() if identify(pid).alive}
        found |= {entry.control_socket: entry.host for entry in entries if entry.control_socket}
        sockets = {os.path.realpath(path): path for path in found}  # the home can have several paths
        ours = (entry for entry in entries if entry.control_socket and not entry.host)
        self._registered = {entry.number: os.path.realpath(entry.control_socket) for entry in ours}
        self._owner_of: dict[int, C] = {}
        self._clients = [reach(path, found[path]) for path in sorted(sockets.values())]
        self._silent: list[C] = []
        """The processes that did not answer what was asked last."""

    def lacking(self) -> list[str]:
        """:returns: a sentence for each process of this host that did not answer what was asked last."""
        return [f"Without the sessions of {who}, which does not answer." for who in self._silent_here()]

    async def sessions(self) -> list[SessionInfo]:
        """:returns: the open sessions of all of them, by number."""
        found = await self._all(lambda client: client.sessions())
        infos = [info for _, part in found for info in part if info.state != "closed"]
        return sorted(infos, key=lambda info: info.number)

    async def escalations(self, closed: bool = False, host: str | None = None) -> list[EscalationView]:
        """
        :param host: the only one whose processes to ask; empty: this one.
        :returns: the escalations of all of them, by number.
        """
        found = await self._all(lambda client: client.escalations(closed), host)
        self._owner_of = {view.number: client for client, part in found for view in part}
        return sorted((view for _, part in found for view in part), key=lambda view: view.number)

    async def shown(self, views: Iterable[EscalationView]) -> None:
        """Report to the owners which of the escalations were shown completely."""
        of: dict[C, list[EscalationView]] = {}
        for view in views:
            of.setdefault(self._owner_of[view.number], []).append(view)

        async def tell(client: C) -> None:
            for view in of[client]:
                with suppress(IronCurtainError):  # it was decided meanwhile
                    await client.shown(view.number, view.digest, view.calls)

        await self._ask(list(of), tell, HOST_SECONDS)

    async def permissions(self) -> list[PermissionView]:
        """:returns: the kept approvals in force of all of them, by number."""
        found = await self._all(lambda client: client.permissions())
        return sorted((view for _, part in found for view in part), key=lambda view: view.number)

    async def of_permission(self, number: int) -> C:
        """:raises NotFound: no process has this permission."""
        for client, views in await self._all(lambda client: client.permissions()):
            if any(view.number == number for view in views):
                return client
        raise NotFound(f"there is no permission {number}: see 'ironcurtain permissions'")

    async def of_escalation(self, number: int) -> tuple[C, EscalationView]:
        """
        :raises NotFound: no process knows this escalation.
        :raises Unavailable: its host does not answer.
        """
        host = number.host if isinstance(number, HostNumber) else ""
        for view in await self.escalations(closed=True, host=host):
            if view.number == number:
                return self._owner_of[number], view
        self._heard(host, f"escalation {number}")
        raise NotFound(f"there is no escalation {number}: see 'ironcurtain escalations'")

    async def deny_all(self, session: str = "") -> list[int]:
        """
        Deny all pending escalations in all of them.

        :param session: number or id of the only session whose escalations to deny.
        :returns: the numbers of the escalations.
        :raises NotFound: no process has the session.
        """
        if session:
            client, number = await self.of_session(session)
            return await client.deny_all(number)
        return sorted(number for _, part in await self._all(lambda client: client.deny_all()) for number in part)

    async def of_session(self, name: str) -> tuple[C, int]:
        """
        :param name: a session's number, id or beginning of an id, or ``last`` for the newest open one here.
        :returns: the process that has it, and its number.
        :raises NotFound: there is no such session.
        :raises Unavailable: its host or its process does not answer.
        """
        if (owner := await self._registered_owner(name)) is not None:
            return owner
        host, _, _ = name.rpartition("/")
        found = await self._all(lambda client: client.sessions(), host or None)
        every = [(info, client) for client, part in found for info in part]
        ours = [pair for pair in every if not pair[1].host]
        if name == "last":
            number = newest((info for info, _ in ours), self._registered)
            named = [pair for pair in ours if pair[0].number == number and pair[0].state != "closed"]
        else:  # it may have been resumed in another process
            named = _named(name, ours) or _named(name, every)  # another host cannot take the id of a session here
            if len(ids := {info.id for info, _ in named}) > 1:
                raise NotFound(several(name, ids))
            named.sort(key=lambda pair: pair[0].state == "closed")
        if not named:
            self._heard(host, "the last session" if name == "last" else f"session {name}")
            if name == "last":
                what, ended = "session that runs", ""
            else:
                what, ended = f"running session {name}", f"; an ended one: 'ironcurtain start --resume {name}'"
            raise NotFound(f"there is no {what}: see 'ironcurtain sessions'{ended}")
        return named[0][1], named[0][0].number

    async def _registered_owner(self, name: str) -> tuple[C, int] | None:
        """
        Others are not waited for: one of them may be stopped.

        :returns: the process that the registry names for a number, if it has that session.
        :raises Unavailable: it does not answer.
        """
        path = next((path for number, path in self._registered.items() if name == str(number)), "")
        named = [client for client in self._clients if not client.host and os.path.realpath(client.path) == path]
        for client, infos in await self._ask(named, lambda client: client.sessions(), OWNER_SECONDS):
            for info in infos:
                if name == str(info.number) and info.state != "closed":
                    return client, info.number
        if named:
            self._heard("", f"session {name}")
        return None

    def _heard(self, host: str, what: str) -> None:
        """
        :param what: was not found.
        :raises Unavailable: a process that may have it did not answer.
        """
        if not host and (silent := self._silent_here()):
            raise Unavailable(f"{silent[0]}, which may have {what}, does not answer: is it stopped?")
        if host and any(client.host == host for client in self._silent):
            raise Unavailable(f"{host} does not answer: see 'ironcurtain fleet status'")
        if host and all(client.host != host for client in self._clients):
            raise Unavailable(f"{host} is not reached now: see 'ironcurtain fleet status'")

    def _silent_here(self) -> list[str]:
        silent = (client.path for client in self._silent if not client.host)
        return ["the daemon" if path == self._daemon else f"process {_pid(path)}" for path in silent]

    async def _all(self, ask: Callable[[C], Coroutine[Any, Any, T]], host: str | None = None) -> list[tuple[C, T]]:
        """
        :param host: the only one whose processes to ask; who names it waits for it as for this one.
        :returns: what they answered.
        """
        clients = [client for client in self._clients if host is None or client.host == host]
        return await self._ask(clients, ask, HOST_SECONDS if host is None else OWNER_SECONDS)

    async def _ask(
        self, clients: Sequence[C], ask: Callable[[C], Coroutine[Any, Any, T]], patience: float
    ) -> list[tuple[C, T]]:
        """
        :param patience: time limit in seconds for processes of other hosts.
        :returns: what they answered.
        """
        seconds = [patience if client.host else OWNER_SECONDS for client in clients]
        answers, self._silent = [], []
        for client, outcome in zip(clients, await self._asked(clients, ask, seconds), strict=True):
            if not isinstance(outcome, BaseException):
                answers.append((client, outcome))
            elif isinstance(outcome, Ended) and not client.host:
                continue
            elif isinstance(outcome, Unavailable | TimeoutError) or _is_improper(outcome):
                self._silent.append(client)
            elif not (client.host and isinstance(outcome, IronCurtainError)):
                raise outcome
        return answers  # one that died meanwhile, is stopped, or of a host that refuses, must not hide those of others

    @abstractmethod
    async def _asked(
        self, clients: Sequence[C], ask: Callable[[C], Coroutine[Any, Any, T]], seconds: Sequence[float]
    ) -> list[T | BaseException]:
        """:returns: what each answered, or why not; ``TimeoutError`` after so many seconds of its own."""


def _pid(path: str) -> str:
    """:returns: the pid of the process of a control socket, which stands in its name; else the path."""
    name = os.path.basename(path)
    return name.removeprefix("owner-").removesuffix(".sock") if name.startswith("owner-") else path


def _is_improper(outcome: BaseException) -> bool:
    return isinstance(outcome, IronCurtainError) and outcome.code == ProtocolViolation.code


def _named(name: str, pairs: Iterable[tuple[SessionInfo, C]]) -> list[tuple[SessionInfo, C]]:
    return [pair for pair in pairs if name == str(pair[0].number) or begins(name, pair[0].id)]
