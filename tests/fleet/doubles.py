"""A host of a fleet with a session that asks, and others that say to it what they like."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.interfaces import IListeningPort
from twisted.internet.task import deferLater

from ironcurtain.audit.signing import SigningKey
from ironcurtain.control.listening import listen
from ironcurtain.control.wire import NAME_HEADER, ROLES_HEADER
from ironcurtain.escalation.model import Escalation
from ironcurtain.fleet.carried import SUBJECTS, Streams
from ironcurtain.fleet.sealed import Sealing
from ironcurtain.fleet.serving import Serving
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.operations import Role
from ironcurtain.operations.operations import Operations
from ironcurtain.services.asyncio_bridge import soon
from tests.control.doubles import Collector
from tests.session.doubles import World, make_request, request

SECRET = "the-secret-argument"
"""Stands in the arguments that wait for a decision."""

PATIENCE = 100.0
"""Time limit in seconds for the end of a stream."""

PEOPLE: Mapping[str, Mapping[str, tuple[Role, ...]]] = {
    "laptop": {"local:ada": (Role.VIEW, Role.APPROVE)},
    "evil": {"local:bob": (Role.VIEW, Role.APPROVE), "local:eve": (Role.VIEW,)},
    "blind": {"local:eve": ()},
}
"""The other hosts, and what the victim lets each person of them do."""


class Post:
    """
    Carries messages between members of this process, in order, each in a later turn of the reactor.

    :ivar seen: all of them, with their subjects.
    """

    def __init__(self) -> None:
        self.members: dict[str, Streams] = {}
        self.others: dict[str, Callable[[str, bytes], None]] = {}
        """Those who are no members, and get the messages for a host that they listen for."""
        self.seen: list[tuple[str, bytes]] = []

    def publish(self, subject: str, data: bytes) -> None:
        """See :class:`~ironcurtain.fleet.carried.Carrier`."""
        self.seen.append((subject, data))
        soon(lambda: self._deliver(subject, data))

    def _deliver(self, subject: str, data: bytes) -> None:
        host = subject.split(".")[2]
        if host in self.members:
            self.members[host].heard(subject, data)
        if host in self.others:
            self.others[host](subject, data)


class Victim:
    """
    The host ``build``, whose agent waits for an answer, and members that it trusts, as in :data:`PEOPLE`.

    :param path: a directory for all of it.
    """

    def __init__(self, path: Path) -> None:
        self.post, self.home = Post(), Home(path / "build", path / "run")
        self.world = World(path, at=self.home, reactor=reactor)
        names = ("build", "stranger", *PEOPLE)
        self.keys = {name: SigningKey.load_or_make(private_directory(path / name)) for name in names}
        hosts = {name: self._host(name, people) for name, people in PEOPLE.items()}
        self.trust = Trust(hosts)
        self.operations = Operations(self.world.manager, once=self.trust.once)
        self.build = Host("build", self.keys["build"].public.raw, {})
        self.sealing = {
            name: Sealing(name, key, lambda: Trust({"build": self.build})) for name, key in self.keys.items()
        }
        self.sealing["build"] = Sealing("build", self.keys["build"], lambda: self.trust)
        serving = Serving(reactor, self.home, lambda: self.trust)
        self.streams = Streams(
            self.post,
            "build",
            lambda host, proved: self.sealing["build"].accepting(host, serving.accept(proved)),
            reactor,
        )
        self.post.members["build"] = self.streams
        for name in PEOPLE:
            self.post.members[name] = Streams(self.post, name, lambda host, proved: None, reactor)
        self._port: IListeningPort | None = None
        self.session: Any = None
        self.asked = 0

    def _host(self, name: str, people: Mapping[str, tuple[Role, ...]]) -> Host:
        return Host(name, self.keys[name].public.raw, {person: frozenset(roles) for person, roles in people.items()})

    async def start(self) -> None:
        """Run the daemon's control API, and one session."""
        await deferLater(reactor, 0)  # from here on, within the loop
        self._port = listen(reactor, self.home.daemon_socket, self.operations)
        self.session = await self.world.manager.create(request())

    async def stop(self) -> None:
        """End everything."""
        for streams in self.post.members.values():
            streams.lose()
        await self.world.manager.stop("the end")
        self.world.watcher.stop()
        if self._port is not None and (stopped := self._port.stopListening()) is not None:
            await stopped

    def ask(self, **more: Any) -> Escalation:
        """:returns: a question of the session, which waits."""
        core = self.world.agents[0].core
        assert core is not None
        self.asked += 1
        made = make_request(core, {"remote": SECRET, "n": self.asked})
        core.escalations.ask(replace(made, **more))
        found: list[Escalation] = core.escalations.pending()
        return found[-1]

    def fill(self, said: bytes, question: Escalation) -> bytes:
        """
        :param said: where ``{n}`` stands for the number of a question, ``{d}`` for its digest, ``{s}`` for its session,
            and ``{l}`` for the length of the body.
        :returns: the same with what these stand for.
        """
        request = question.request
        for name, value in (("n", str(question.number)), ("d", request.digest), ("s", request.session_id)):
            said = said.replace(b"{%b}" % name.encode(), value.encode())
        return said.replace(b"{l}", b"%d" % len(said.partition(b"\r\n\r\n")[2]), 1)

    def open(self, host: str, service: str) -> Any:
        """:returns: a protocol that is connected to a service of the victim, as one of a member."""
        made: Any = Collector()
        self.post.members[host].open("build", self.sealing[host].towards(self.build, made))
        made.transport.write(f"{service}\n".encode())
        return made

    async def request(self, host: str, data: bytes, service: str = "control daemon") -> bytes:
        """:returns: all that the victim answers to what a member sends to a service, until it ends the stream."""
        stream = self.open(host, service)
        stream.transport.write(data.replace(b"{l}", b"0"))
        answer: bytes = await stream.closed.addTimeout(PATIENCE, reactor)
        return answer

    def say(self, message: bytes, stream: str = "f" * 32, host: str = "build") -> None:
        """Publish a message, as whoever has all permissions at the server."""
        self.post.publish(f"{SUBJECTS}.{host}.{stream}", message)


def http(method: str, target: str, who: str = "", body: object = None, more: str = "", roles: str = "admin") -> bytes:
    """:returns: a request for a person, whose answer ends the stream; :meth:`Victim.fill` makes it whole."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    said = f"{NAME_HEADER}: {who}\r\n{ROLES_HEADER}: {roles}\r\n" if who else ""
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {{l}}\r\n{said}{more}"
    return head.encode() + b"\r\n" + data
