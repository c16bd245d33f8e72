"""
Other hosts' processes as processes of this one: a socket for each, and their sessions in the registry of this home.

So consoles and commands find them as they find everything else. The entries belong to the daemon, and go with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec
from twisted.internet.defer import CancelledError, Deferred, DeferredSemaphore, TimeoutError
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.control.client import ControlClient
from ironcurtain.errors import IronCurtainError
from ironcurtain.fleet.serving import CONTROL, DAEMON, PROCESSES, TERMINAL, Process
from ironcurtain.home.host_numbers import NUMBERS
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.network.relay import Splice
from ironcurtain.operations import Principal
from ironcurtain.operations.principal import owner
from ironcurtain.process.identity import identify
from ironcurtain.services import unix_socket
from ironcurtain.services.unix_socket import UnixListener
from ironcurtain.terminal.wire import LineReader, read_hello

SESSIONS_LIMIT = 1000
"""Maximum number of sessions of a host that are taken into the registry."""

PROCESSES_LIMIT = 64
"""Maximum number of processes of a host that get a socket here."""

LOOK_SECONDS = 10.0
"""Time limit in seconds for a host's answer to what runs there."""

LOOKS = 4
"""
Maximum number of hosts that are asked at the same time. Each has the memory of a TLS connection for that, which the
process keeps afterwards: with all of a large fleet at once, when it is reached again, that would be many megabytes.
"""

TEXT_LIMIT = 200
"""Maximum number of characters that are taken of a text about a session."""

SESSION = re.compile(r"[0-9a-f-]{1,40}")
"""The id of a session."""

Open = Callable[[str, str, IProtocol], None]
"""Opens a stream to a host, whose first line is given, and connects a protocol to it."""


class ShownSessions:
    """
    The sessions of another host in the registry.

    :param host: its name.
    """

    def __init__(self, registry: SessionRegistry, host: str) -> None:
        self._registry, self._host = registry, host
        self._digests: dict[str, bytes] = {}
        """Of the entry of each, instead of that: there can be thousands."""

    def show(self, entries: Mapping[str, SessionEntry]) -> None:
        """:param entries: all that it has now, by id, instead of those before."""
        for session in self._digests.keys() - entries.keys():
            self._registry.remove(session, self._host)
        digests = {session: sha256(msgspec.json.encode(entry)).digest() for session, entry in entries.items()}
        for session, entry in entries.items():
            if self._digests.get(session) != digests[session]:
                self._registry.remove(session, self._host)
                self._registry.add(entry)
        self._digests = digests


class HostMirror:
    """
    One other host.

    :ivar known: whether the newest answer was understood.
    :param open_: see :data:`Open`.
    :param who: for whom this daemon asks what runs there.
    :param looks: how many may do so at the same time.
    """

    log = Logger()

    def __init__(
        self, reactor: Any, home: Home, host: str, open_: Open, who: Principal, looks: DeferredSemaphore
    ) -> None:
        self._reactor, self._home, self._host, self._open, self._looks = reactor, home, host, open_, looks
        self._shown = ShownSessions(SessionRegistry(home.registry), host)
        self._listeners: dict[str, UnixListener] = {}
        self._client = ControlClient(reactor, str(home.fleet_socket(host, DAEMON)), who, host)
        self._looking: Deferred[None] | None = None
        self._again = self._over = False
        self.known = False

    @property
    def looking(self) -> bool:
        """Whether that is found out now."""
        return self._looking is not None

    def look(self) -> None:
        """Find out what runs there. While that goes on, it is repeated once."""
        self._again, self.known = True, False
        if self._looking is None and not self._over:
            self._looking = Deferred.fromCoroutine(self._follow())
            self._looking.addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if failure.check(CancelledError) is None:
            self.log.failure("host {host} was not looked at", failure, host=self._host)

    async def stop(self) -> None:
        """Forget everything of this host."""
        self._over = True
        if self._looking is not None:
            self._looking.cancel()
        await self._show(())

    async def _follow(self) -> None:
        try:
            while self._again and not self._over:
                self._again = False
                await self._listen(DAEMON)
                try:
                    found = await self._looks.run(self._ask)
                except (IronCurtainError, TimeoutError) as e:
                    self.log.warn("host {host} does not say what runs there: {error}", host=self._host, error=e)
                else:
                    await self._show(found)
                    self.known = not self._again
        finally:
            self._looking = None

    def _ask(self) -> Deferred[list[Process]]:
        asked = Deferred.fromCoroutine(self._client.read(PROCESSES, list[Process]))
        return asked.addTimeout(LOOK_SECONDS, self._reactor)

    async def _show(self, found: Iterable[Process]) -> None:
        entries: dict[str, SessionEntry] = {}
        names = set[str]()
        for process in islice(found, PROCESSES_LIMIT):
            names.add(process.name)
            await self._listen(process.name)
            for entry in process.sessions[: SESSIONS_LIMIT - len(entries)]:
                if SESSION.fullmatch(entry.session_id) and 0 <= entry.number < NUMBERS:  # the id names a file here
                    entries[entry.session_id] = self._ours(entry, process.name)
        self._shown.show(entries)
        for name in self._listeners.keys() - names:
            await self._listeners.pop(name).stop()

    def _ours(self, entry: SessionEntry, process: str) -> SessionEntry:
        here = identify()
        return msgspec.structs.replace(
            entry,
            label=entry.label[:TEXT_LIMIT],
            kind=entry.kind[:TEXT_LIMIT],
            started_at=entry.started_at[:TEXT_LIMIT],
            host=self._host,
            escalation_dir="",
            control_socket=str(self._home.fleet_socket(self._host, process)),
            pid=here.pid,
            pid_start_time=here.start_time,
            boot_id=here.boot_id,
        )

    async def _listen(self, process: str) -> None:
        if process not in self._listeners:
            path = self._home.fleet_socket(self._host, process)
            factory = Factory.forProtocol(lambda: _Outgoing(self._host, process, self._open))
            self._listeners[process] = await unix_socket.listen(path, factory)


class Mirrors:
    """
    All other hosts that are here.

    :param open_: see :data:`Open`.
    """

    def __init__(self, reactor: Any, home: Home, open_: Open) -> None:
        self._reactor, self._home, self._open = reactor, home, open_
        self._of: dict[str, HostMirror] = {}
        self._looks = DeferredSemaphore(LOOKS)
        self._ending: dict[str, bool] = {}
        """Those that are being forgotten, and whether they were seen again meanwhile."""

    @property
    def hosts(self) -> set[str]:
        """Their names."""
        return set(self._of)

    @property
    def looking(self) -> bool:
        """Whether something is found out now."""
        return any(mirror.looking for mirror in self._of.values())

    def knows(self, host: str) -> bool:
        """:returns: whether it is known what runs on a host, as far as that host has told of changes."""
        return host in self._of and self._of[host].known

    def look(self, host: str) -> None:
        """Find out what runs on a host."""
        if host in self._ending:  # its sockets still have the same paths
            self._ending[host] = True
            return
        if host not in self._of:
            self._of[host] = HostMirror(self._reactor, self._home, host, self._open, owner(), self._looks)
        self._of[host].look()

    async def keep(self, hosts: Collection[str]) -> None:
        """Forget all others."""
        for host in self.hosts - set(hosts):
            self._ending[host] = False
            try:
                await self._of.pop(host).stop()
            finally:
                again = self._ending.pop(host)
            if again:
                self.look(host)


class _Outgoing(Protocol):
    """A client of this host, whose first byte says what it wants: requests are HTTP, viewers begin with JSON."""

    log = Logger()

    def __init__(self, host: str, process: str, open_: Open) -> None:
        self._host, self._process, self._open = host, process, open_
        self._first, self._line = bytearray(), LineReader()
        self._near: IProtocol | None = None

    def dataReceived(self, data: bytes) -> None:
        if self._near is not None:
            self._near.dataReceived(data)
            return
        self._first += data
        try:
            service = f"{CONTROL} {self._process}"
            if self._first[:1] == b"{":
                if (line := self._line.feed(data)) is None:
                    return
                service = f"{TERMINAL} {read_hello(line).session}"
            splice = Splice()
            self._open(self._host, service, splice.far)  # before anything of the client is passed on
        except IronCurtainError as e:
            self.log.warn("a client of another host was dropped: {error}", error=e)
            self.transport.abortConnection()  # type: ignore[union-attr]
            return
        self._near = splice.near
        self._near.makeConnection(self.transport)
        self._near.dataReceived(bytes(self._first))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._near is not None:
            self._near.connectionLost(reason)
