"""Find the sessions of all processes."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import TestCase

from ironcurtain.control import owners as owners_module
from ironcurtain.control.listening import listen
from ironcurtain.control.reactor_owners import ReactorOwners
from ironcurtain.errors import NotFound, SessionError, Unavailable
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.operations.operations import Operations
from ironcurtain.process.identity import identify
from ironcurtain.session.model import SessionRequest
from tests.audit.doubles import scratch
from tests.session.doubles import PlainAgent, World, make_request, request


class OwnersTests(TestCase):
    async def test_a_dead_or_stopped_owner_does_not_hide_the_others(self) -> None:
        """Its entry may still be read just before it dies; and a process that Ctrl-Z stopped answers nothing."""
        self.patch(owners_module, "OWNER_SECONDS", 1.0)
        world = World(scratch(self), reactor=reactor)
        directory = scratch(self)
        sockets = [directory / name for name in ("1-dead.sock", "2-alive.sock", "3-stopped.sock")]
        stopped_owner = socket.socket(socket.AF_UNIX)
        self.addCleanup(stopped_owner.close)
        stopped_owner.bind(str(sockets[2]))
        stopped_owner.listen()
        port = listen(reactor, sockets[1], Operations(world.manager))
        session = await world.manager.create(request())
        registry = SessionRegistry(world.home.registry)
        for number, path in enumerate(sockets):
            registry.add(entry(str(number), path))
        registry.add(replace(entry("9", sockets[1]), number=99, control_socket=""))  # as of another program
        core = world.agents[0].core
        assert core is not None
        core.escalations.ask(make_request(core))
        owners = ReactorOwners(reactor, world.home)
        self.assertEqual([info.id for info in await owners.sessions()], [session.id])
        (view,) = await owners.escalations()
        client, again = await owners.of_escalation(view.number)
        self.assertEqual(again, view)
        self.assertEqual((await client.sessions())[0].id, session.id)
        _, number = await owners.of_session(session.id)
        self.assertEqual((await owners.of_session(session.id[:9]))[1], number)
        self.assertEqual((await owners.of_session("last"))[1], number)
        registry.remove(session.id)
        registry.add(replace(entry(session.id, sockets[1]), number=number))
        owners = ReactorOwners(reactor, world.home)
        self.assertEqual((await owners.of_session(str(number)))[1], number)
        self.assertEqual(owners.lacking(), [])  # the stopped one was not waited for
        for lookup in (owners.of_session("nope"), owners.of_escalation(99)):
            await self.assertFailure(Deferred.fromCoroutine(lookup), Unavailable)  # the stopped one may have it
        self.assertEqual(owners.lacking(), [f"Without the sessions of process {sockets[2]}, which does not answer."])
        SessionRegistry(world.home.registry).remove("2")
        owners = ReactorOwners(reactor, world.home)
        for lookup in (owners.of_session("nope"), owners.of_escalation(99)):
            await self.assertFailure(Deferred.fromCoroutine(lookup), NotFound)
        self.assertEqual(owners.lacking(), [])
        await world.manager.stop("the end")
        world.watcher.stop()
        stopped = port.stopListening()
        assert stopped is not None
        await stopped

    def test_who_names_a_host_waits_for_it_alone_and_longer(self) -> None:
        world = World(scratch(self), reactor=reactor)
        world.home.prepare()
        registry = SessionRegistry(world.home.registry)
        silent = {host: scratch(self) / f"{host or 'here'}.sock" for host in ("", "build-3")}
        for number, (host, path) in enumerate(silent.items()):
            registry.add(entry(f"s{number}", path, host))
        number = HostNumber("build-3", 1)
        for name in (str(number), number):
            memory = MemoryReactorClock()
            owners = ReactorOwners(memory, world.home)
            asked: Coroutine[Any, Any, Any]
            asked = owners.of_session(name) if isinstance(name, str) else owners.of_escalation(name)
            waiting = Deferred.fromCoroutine(asked)
            self.assertEqual([address for address, *_ in memory.unixClients], [str(silent["build-3"])])
            memory.advance(owners_module.OWNER_SECONDS - 0.1)
            self.assertNoResult(waiting)
            memory.advance(0.1)
            self.assertIn("build-3 does not answer", self.failureResultOf(waiting, Unavailable).getErrorMessage())

    def test_who_names_a_registered_session_waits_for_its_process_alone(self) -> None:
        world = World(scratch(self), reactor=reactor)
        world.home.prepare()
        sockets = {number: scratch(self) / f"{number}.sock" for number in (1, 2)}
        for number, path in sockets.items():
            SessionRegistry(world.home.registry).add(replace(entry(f"s{number}", path), number=number))
        memory = MemoryReactorClock()
        waiting = Deferred.fromCoroutine(ReactorOwners(memory, world.home).of_session("2"))
        self.assertEqual([address for address, *_ in memory.unixClients], [str(sockets[2])])
        memory.advance(owners_module.OWNER_SECONDS)
        self.assertIn("which may have session 2", self.failureResultOf(waiting, Unavailable).getErrorMessage())
        self.assertEqual(len(memory.unixClients), 1)

    async def test_sessions_that_are_in_no_registry_yet(self) -> None:
        """They start: in the daemon and in a process beside it; sockets of dead processes are not asked."""
        pauses, worlds = [Deferred[None](), Deferred[None]()], [World(scratch(self), reactor=reactor)]
        home = worlds[0].home
        home.prepare()
        worlds.append(World(scratch(self), at=home, reactor=reactor))
        paths = (home.daemon_socket, home.owner_socket(os.getpid()))
        starting, ports = [], []
        for world, path, pause in zip(worlds, paths, pauses, strict=True):
            ports.append(listen(reactor, path, Operations(world.manager)))
            world.next_agent = PlainAgent(pause=pause)
            starting.append(Deferred.fromCoroutine(world.manager.create(request())))
        os.link(home.daemon_socket, home.owner_socket(dead_pid()))
        owners = ReactorOwners(reactor, home)
        found = [(info.number, info.state) for info in await owners.sessions()]
        self.assertEqual(found, [(1, "initializing"), (2, "initializing")])
        for number, start in enumerate(starting, 1):
            client, _ = await owners.of_session(str(number))
            self.assertEqual((await client.stop(number)).state, "closed")
            await self.assertFailure(start, SessionError)
        for world, port in zip(worlds, ports, strict=True):
            world.watcher.stop()
            await maybeDeferred(port.stopListening)

    async def test_beginning_of_several_ids_names_no_session_and_they_are_shown(self) -> None:
        world, numbers = World(scratch(self), reactor=reactor), itertools.count()
        self.patch(uuid, "uuid4", lambda: uuid.UUID(f"abcd{next(numbers):028x}"))
        first, second = [await world.manager.create(request()) for _ in range(2)]
        port = listen(reactor, world.home.daemon_socket, Operations(world.manager))
        owners = ReactorOwners(reactor, world.home)
        failure = await self.assertFailure(Deferred.fromCoroutine(owners.of_session("abcd")), NotFound)
        self.assertIn(f"abcd is the beginning of 2 ids ({first.id}, {second.id}): give more of one", str(failure))
        self.assertEqual((await owners.of_session(second.id))[1], second.number)
        await world.manager.stop("the end")
        world.watcher.stop()
        await maybeDeferred(port.stopListening)

    async def test_a_session_that_goes_on_elsewhere(self) -> None:
        """Where it ended, it is still known."""
        world = World(scratch(self), reactor=reactor)
        other = World(scratch(self), at=world.home, reactor=reactor)
        session = await world.manager.create(request())
        await world.manager.close(session, "enough")
        ports = [
            listen(reactor, world.home.daemon_socket, Operations(world.manager)),
            listen(reactor, world.home.owner_socket(os.getpid()), Operations(other.manager)),
        ]
        client, _ = await ReactorOwners(reactor, world.home).of_session("1")
        self.assertEqual((await client.session(1)).state, "closed")
        await other.manager.create(SessionRequest("", resume=session.id))
        registry = SessionRegistry(world.home.registry)
        registry.remove(session.id)
        registry.add(replace(entry(session.id, world.home.daemon_socket), number=1))  # as it was before it ended there
        client, _ = await ReactorOwners(reactor, world.home).of_session("1")
        self.assertEqual((await client.session(1)).state, "ready")
        for closing, port in zip((world, other), ports, strict=True):
            await closing.manager.stop("the end")
            closing.watcher.stop()
            await maybeDeferred(port.stopListening)


def dead_pid() -> int:
    """:returns: of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        return process.pid


def entry(session: str, path: Path, host: str = "") -> SessionEntry:
    """:returns: the entry of a session, as if this process had it behind a socket."""
    us = identify()
    return SessionEntry(
        session_id=session,
        escalation_dir="",
        label="",
        started_at="",
        pid=us.pid,
        pid_start_time=us.start_time,
        boot_id=us.boot_id,
        control_socket=str(path),
        host=host,
    )
