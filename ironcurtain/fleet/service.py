"""This host as a member of a fleet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain import __version__
from ironcurtain.accounts.places import Accounts
from ironcurtain.audit.signing import SigningKey
from ironcurtain.audit.witness import fleet_heads
from ironcurtain.errors import IronCurtainError, NotAllowed, ProtocolViolation, Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.fleet.carried import Streams
from ironcurtain.fleet.heads import KeptHeads
from ironcurtain.fleet.heads_stream import HeadsStream
from ironcurtain.fleet.joining import read_credentials
from ironcurtain.fleet.members import INTERVAL, Member, Members, sign, verify
from ironcurtain.fleet.mirror import Mirrors
from ironcurtain.fleet.nats import NatsCarrier
from ironcurtain.fleet.presence import Presence
from ironcurtain.fleet.sealed import Sealing
from ironcurtain.fleet.serving import Serving
from ironcurtain.fleet.taken import Keeper
from ironcurtain.fleet.taking import CheckRoom, Offering, Room, Taker
from ironcurtain.fleet.task_queue import TaskQueue
from ironcurtain.fleet.trust_file import TrustFile
from ironcurtain.home.fleet_section import FleetSettings
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.home.numbers import Counter
from ironcurtain.home.registry import SessionRegistry
from ironcurtain.home.sections import Provider
from ironcurtain.platform.memory import available_memory
from ironcurtain.providers.keys import has_key
from ironcurtain.providers.registry import KNOWN_PROVIDERS
from ironcurtain.services.asyncio_bridge import from_asyncio
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.parts import Services

LOOK_SECONDS = 1.0
"""Seconds between two looks at what has changed: the file of trust, and the sessions of this host."""

ACCOUNTS = 20
"""Maximum number of names of accounts in a statement."""

START_SECONDS = 2.0
"""No daemon starts faster: streams that are younger are not of the one before it."""


class FleetService:
    """
    :param settings: of this host.
    :raises ConfigurationError: the credentials cannot be used.
    """

    log = Logger()

    def __init__(self, reactor: Any, home: Home, settings: FleetSettings, able: Abilities) -> None:
        credentials = read_credentials(home.path / Path(settings.credentials).expanduser())
        options = credentials.options() | ({"servers": list(settings.servers)} if settings.servers else {})
        self._reactor, self._home, name = reactor, home, credentials.host
        key, self._trust = SigningKey.load_or_make(home.records), TrustFile(home)
        self._members, self._mirrors = Members(reactor.seconds), Mirrors(reactor, home, self._open)
        self._own = OwnState(home, name, key, settings, able)
        keeper = Keeper(reactor, home)
        taker = Taker(reactor, home, self._trust, self._own.room, able.check, keeper)
        serving, self._sealing = Serving(reactor, home, self._trust), Sealing(name, key, self._trust)
        kept, trust = KeptHeads(home), self._trust
        heads = HeadsStream(
            name, credentials.replicas, fleet_heads(home), lambda host, line: kept.take(host, line, trust())
        )
        queue = TaskQueue(credentials.replicas, taker)
        presence = Presence(lambda: self._streams.hosts, self._gone)
        self._tasks = Tasks(Offering(home, name, key, queue, self._silent), keeper)
        also = (heads.send, heads.receive, queue.run, presence.run)
        self._carrier = NatsCarrier(options, credentials.replicas, self._heard, self._told, self._changed, also)
        self._streams = Streams(
            self._carrier,
            name,
            lambda host, proved: self._sealing.accepting(host, serving.accept(proved)),
            reactor,
        )
        self._unreached = Unreached("not connected yet", time.time(), reactor.seconds())
        self._loop = LoopingCall(self._round)

    async def start(self) -> None:
        """Become a member, now or whenever the server is reached."""
        private_directory(self._home.fleet)
        self._carrier.start(self._streams.subject)
        self._loop.clock = self._reactor
        self._loop.start(LOOK_SECONDS)

    async def stop(self) -> None:
        """Leave."""
        self._loop.stop()
        await self._mirrors.keep(())
        await from_asyncio(self._carrier.withdraw(self._own.name))
        self._streams.lose()
        await from_asyncio(self._carrier.stop())
        self._home.fleet_members.unlink(missing_ok=True)

    def _round(self) -> None:
        try:
            self._look()
        except (OSError, IronCurtainError) as e:  # such as a full disk; trust is looked at all the same, next time
            self.log.warn("the state of the fleet is not written: {error}", error=e)

    def _look(self) -> None:
        """Notice what has changed here: whom this host believes, its sessions, and who is lost."""
        for host in self._trust.changed():  # its terminals and events, too, which were judged once
            self._streams.lose(host, f"the trust in {host} was changed")
        self._members.keep(self._trust().hosts)
        here = self._members.here()
        for host in self._mirrors.hosts.difference(here):
            self._lose(host, f"{host} is lost")
        if self._own.due(self._reactor.seconds()) or self._unreached.why:
            self._say()
        self._tasks.look(self._reactor.seconds(), not self._unreached.why)
        known = self._members.kept(self._unreached.why, self._unreached.since, time.time())
        write_atomically(self._home.fleet_members, msgspec.json.encode(known), durable=False)

    def _say(self) -> None:
        now = self._reactor.seconds()
        saying = from_asyncio(self._carrier.state(self._own.name, self._own.statement(now)))
        saying.addCallbacks(self._said, self._failed, callbackArgs=(now,))

    def _said(self, stored: bool, at: float) -> None:
        if stored:
            self._tasks.keeper.stored(at)

    def _silent(self, host: str) -> bool:
        return not self._unreached.why and self._members.silent(host, self._unreached.at)

    def _failed(self, failure: Failure) -> None:
        self.log.failure("a part of the fleet failed", failure)

    def _heard(self, subject: str, message: bytes) -> None:
        self._streams.heard(subject, message)

    def _told(self, host: str, statement: bytes | None) -> None:
        if host == self._own.name:
            return
        if statement is None:
            self._members.left(host)
            self._lose(host, f"{host} is lost")
            return
        try:
            member = verify(statement, self._trust())
        except ProtocolViolation as e:
            self.log.debug("left out what is said of {host}: {error}", host=repr(host[:63]), error=e)
            return
        before = self._members.of(host)
        if member.host == host and self._members.heard(member):
            if before is not None and before.start != member.start:
                self._streams.lose(host, f"{host} was started again", older=START_SECONDS)
            if before is None or before.list != member.list or not self._mirrors.knows(host):
                self._mirrors.look(host)

    def _gone(self, host: str) -> None:
        self._streams.lose(host, f"{host} is connected to the fleet's server no more")

    def _lose(self, host: str, why: str) -> None:
        self._streams.lose(host, why)
        Deferred.fromCoroutine(self._mirrors.keep(self._mirrors.hosts - {host})).addErrback(self._failed)

    def _open(self, host: str, service: str, protocol: IProtocol) -> None:
        if (known := self._trust().hosts.get(host)) is None:
            raise NotAllowed(f"{host} is not trusted any more: see fleet.trust")
        if self._unreached.why:
            raise Unavailable(f"{host} cannot be reached: {self._unreached.why}")
        self._streams.open(host, self._sealing.towards(known, protocol))
        protocol.transport.write(f"{service}\n".encode())  # type: ignore[attr-defined]

    def _changed(self, why: str) -> None:
        if why == self._unreached.why:
            return
        self._unreached = Unreached(why, time.time(), self._reactor.seconds())
        if why:
            self.log.warn("the fleet is not reached: {why}", why=why)
            self._streams.lose()
            Deferred.fromCoroutine(self._mirrors.keep(())).addErrback(self._failed)
        else:
            self.log.info("{name} is a member of the fleet", name=self._own.name)
            self._say()
            for host in self._members.here():
                self._mirrors.look(host)


class Abilities(msgspec.Struct, frozen=True):
    """
    What this host can run.

    :param agents: kinds of agents.
    :param accounts: returns the names of the accounts that can pay.
    :param check: raises :class:`~ironcurtain.errors.IronCurtainError` if a session could not be started here now.
    """

    agents: tuple[str, ...]
    accounts: Callable[[], tuple[str, ...]]
    check: CheckRoom

    @classmethod
    def of(cls, manager: SessionManager, agents: tuple[str, ...], environ: Mapping[str, str]) -> Abilities:
        """:returns: what the sessions of a process can be, with the settings that it has at the time."""
        agents = tuple(agent for agent in agents if agent != "mcp-proxy")  # it serves clients of its own host
        return cls(agents, lambda: account_names(manager.services, environ), manager.require_room)


def account_names(services: Services, environ: Mapping[str, str]) -> tuple[str, ...]:
    """:returns: the names of the accounts that can pay here: logins, and providers that there are keys for."""
    settings = services.settings
    logins = {place.name for place in Accounts(services.home, settings.accounts, environ).all()}
    keys = {name for name in KNOWN_PROVIDERS if has_key(name, settings.providers.get(name, Provider()).key, environ)}
    return tuple(sorted(logins | keys))


class Tasks(msgspec.Struct, frozen=True):
    """
    The tasks of this host, and those of others that run here.

    :param offering: of the former.
    :param keeper: of the latter.
    """

    offering: Offering
    keeper: Keeper

    def look(self, now: float, reached: bool) -> None:
        """
        Do what is due.

        :param now: on a monotonic clock.
        :param reached: whether the server is.
        """
        if reached:
            self.offering.look(now)
        self.keeper.look(now)


class Unreached(msgspec.Struct, frozen=True):
    """
    Since when the server is reached, or not.

    :param why: it is not; empty: it is.
    :param since: seconds since the epoch.
    :param at: the same, on a monotonic clock.
    """

    why: str
    since: float
    at: float


class OwnState:
    """
    What this host says of itself.

    :param key: signs it.
    :ivar name: of this host.
    :raises ConfigurationError: the number of its starts cannot be counted.
    """

    def __init__(self, home: Home, name: str, key: SigningKey, settings: FleetSettings, able: Abilities) -> None:
        self._home, self.name, self._key, self._settings, self._able = home, name, key, settings, able
        self._start, self._number = Counter(home.numbers("fleet-start")).next(), 0
        self._said: tuple[str, ...] | None = None
        self._changes = 0
        self._said_at = 0.0

    def due(self, now: float) -> bool:
        """:returns: whether there is something new to say, or nothing was said for the interval."""
        return self._said != self._sessions() or now - self._said_at >= INTERVAL

    def statement(self, now: float) -> bytes:
        """:returns: what there is to say now, signed."""
        before, self._said = self._said, self._sessions()
        self._changes += self._said != before
        self._said_at, self._number = now, self._number + 1
        member = Member(
            host=self.name,
            start=self._start,
            number=self._number,
            version=__version__,
            sessions=len(self._said),
            changes=self._changes,
            capacity=self._settings.capacity,
            load=round(os.getloadavg()[0] / (os.cpu_count() or 1), 2),
            free_memory=available_memory() or 0,
            agents=self._able.agents,
            accounts=self._able.accounts()[:ACCOUNTS],
            labels=self._settings.labels,
        )
        return sign(member, self._key)

    def room(self) -> Room:
        """:returns: what this host could take now."""
        settings = self._settings
        return Room(
            settings.capacity - len(self._sessions()), available_memory(), self._able.agents, settings.labels, self.name
        )

    def _sessions(self) -> tuple[str, ...]:
        return tuple(entry.session_id for entry in SessionRegistry(self._home.registry).here())
