"""
What this host serves to others, inside TLS: the control API and the terminals of its processes.

The first line of a stream says which: ``control PROCESS`` or ``terminal SESSION``. Requests are passed on to the
process's own socket with the principal that the trust of this host allows; the process judges them as those of anybody.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, BinaryIO

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.interfaces import IProtocol, IPushProducer
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import FileSender
from twisted.python.failure import Failure
from twisted.web.client import Agent, FileBodyProducer, ResponseDone
from twisted.web.http_headers import Headers
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from ironcurtain.control import wire
from ironcurtain.control.client import SocketEndpoints
from ironcurtain.control.server import BoundedRequest, QuietSite
from ironcurtain.errors import IronCurtainError, NotAllowed, NotFound, ProtocolViolation, Unavailable, UsageError
from ironcurtain.fleet.sealed import peer_key
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.fleet.tasks import Started
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.http.connections import QuietConnectionPool
from ironcurtain.network.relay import Splice
from ironcurtain.operations import Role
from ironcurtain.process.identity import identify
from ironcurtain.session.elsewhere import session_directory, snapshots
from ironcurtain.terminal.wire import LineReader

CONTROL, TERMINAL = "control", "terminal"
"""The services."""

DAEMON = "daemon"
"""The process that every member has."""

PROCESSES = "/v1/processes"
"""The path of the list of this host's processes and sessions."""

FILES = "/v1/files"
"""The numbers of all sessions of this host; below it are their files: ``/v1/files/NUMBER/KIND``."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "info": "session.json",
        "log": "session.log",
        "audit": "audit.jsonl",
        "history": "history.jsonl",
        "findings": "findings.json",
    }
)
"""The files of sessions that are served, by kind."""

FILE_LIMIT = 64 * 1024 * 1024
"""Maximum number of bytes served of a file: its newest ones, or those from a place on."""

TASKS = "/v1/tasks"
"""Below it are the tasks of this host: ``/v1/tasks/ID/take``, ``begin`` and ``report``."""

ON_ITS_WAY = 1.0
"""Seconds that a decision may have needed from the other host to here."""

BODY_LIMIT = 64 * 1024
"""Maximum size in bytes of what is said of a task."""

_TASK = re.compile(rb"/v1/tasks/([0-9a-f]{16})/(take|begin|report)")
_FILE = re.compile(rb"/v1/files/([0-9]{1,15})/(info|log|audit|history|findings)")
_PLACE = re.compile(rb"[0-9]{1,15}")
_WORD = re.compile(rb"(control|terminal) ([a-z0-9-]{1,64})")


class Process(msgspec.Struct, frozen=True):
    """
    A process of a host that owns sessions.

    :param name: for the first line of a stream.
    :param sessions: its entries in the registry, whose sockets are the host's own and mean nothing elsewhere.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^(daemon|owner-[0-9]{1,10})\Z")]
    sessions: tuple[SessionEntry, ...]


def processes(home: Home) -> dict[str, tuple[str, Process]]:
    """:returns: the processes of a home that run now, by name: the path of the control socket, and what others know."""
    found = {DAEMON: str(home.daemon_socket)} if home.daemon_socket.exists() else {}
    found |= {path.stem: str(path) for path, pid in home.owner_sockets() if identify(pid).alive}
    entries = SessionRegistry(home.registry).here()
    return {
        name: (path, Process(name, tuple(entry for entry in entries if entry.control_socket == path)))
        for name, path in found.items()
    }


class Serving:
    """
    :param trust: returns whom this host believes now. It is asked at each request, so that who is not believed any more
        counts no longer.
    """

    def __init__(self, reactor: Any, home: Home, trust: Callable[[], Trust]) -> None:
        self._reactor, self._home, self._trust = reactor, home, trust

    def accept(self, proved: Callable[[], None]) -> IProtocol:
        """
        :param proved: called once the other side has proved who it is, and has said what it wants.
        :returns: a protocol for the inside of a stream that another host has opened.
        """
        return Incoming(self._serve, proved)

    def _serve(self, service: str, name: str, transport: Any) -> IProtocol:
        host = self._host(transport)
        if service == TERMINAL:
            return self._terminal(name)
        path = processes(self._home).get(name, ("", None))[0]
        if not path:
            raise NotFound(f"{host.name} asks for a process that does not run: {name}")
        site = QuietSite(
            _Forwarding(self._reactor, path, self._home, lambda: self._host(transport)), reactor=self._reactor
        )
        site.requestFactory = BoundedRequest
        made: IProtocol = site.buildProtocol(None)
        return made

    def _terminal(self, session: str) -> IProtocol:
        """The ticket that the viewer shows is what permits it; the principal got it from the control API."""
        splice = Splice()
        endpoint = UNIXClientEndpoint(self._reactor, str(self._home.session_run(session).stream_socket))
        factory = Factory.forProtocol(lambda: splice.far)
        endpoint.connect(factory).addErrback(lambda _: splice.reset())
        return splice.near

    def _host(self, transport: Any) -> Host:
        host = self._trust().host_of(peer_key(transport) or b"")
        if host is None:
            raise NotAllowed("this host is not trusted any more: see fleet.trust")
        return host


class Incoming(Protocol):
    """
    Reads the first line of a stream, and gives the rest to the service that it names.

    :param serve: returns the protocol of a service, or raises an error to end the stream.
    :param proved: called once it has.
    """

    log = Logger()

    def __init__(self, serve: Callable[[str, str, Any], IProtocol], proved: Callable[[], None]) -> None:
        self._serve, self._proved, self._line = serve, proved, LineReader()
        self._inner: IProtocol | None = None

    def dataReceived(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.dataReceived(data)
            return
        try:
            if (line := self._line.feed(data)) is None:
                return
            if (match := _WORD.fullmatch(line.rstrip(b"\n"))) is None:
                raise ProtocolViolation("fleet", "a stream for no known service")
            self._inner = self._serve(match[1].decode(), match[2].decode(), self.transport)
        except IronCurtainError as e:
            self.log.warn("ended a stream of the fleet: {error}", error=e)
            self.transport.abortConnection()  # type: ignore[union-attr]
            return
        self._proved()
        self._inner.makeConnection(self.transport)  # type: ignore[arg-type]
        if self._line.rest:
            self._inner.dataReceived(self._line.rest)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._inner is not None:
            self._inner.connectionLost(reason)


class _Forwarding(Resource):
    """Passes requests of one stream on to a process of this host."""

    isLeaf = True
    log = Logger()

    def __init__(self, reactor: Any, path: str, home: Home, host: Callable[[], Host]) -> None:
        super().__init__()
        self._home, self._host, self._tasks = home, host, TaskFiles(home)
        pool = QuietConnectionPool(reactor, persistent=False)
        self._agent = Agent.usingEndpointFactory(reactor, SocketEndpoints(reactor, path), pool=pool)

    def render(self, request: Request) -> int:
        """Answer one request."""
        Deferred.fromCoroutine(self._answer(request)).addErrback(self._failed, request)
        return NOT_DONE_YET

    async def _answer(self, request: Request) -> None:
        host = self._host()
        if request.path == PROCESSES.encode() and request.method == b"GET":
            self._list(request, host)
            return
        if (match := _TASK.fullmatch(request.path)) is not None and request.method == b"POST":
            said = request.content.read(BODY_LIMIT)  # type: ignore[union-attr]
            _finish(request, self._task(host, match[1].decode(), match[2], said))
            return
        if (claimed := wire.claimed_principal(request)) is None:
            raise NotAllowed("a request of the fleet says for whom it is made")
        who = host.principal(claimed.name, claimed.roles)
        if (match := _FILE.fullmatch(request.path)) is not None and request.method == b"GET":
            who.require(Role.VIEW)
            self._file(request, match[1].decode(), KINDS[match[2].decode()])
            return
        if request.path == FILES.encode() and request.method == b"GET":
            who.require(Role.VIEW)
            _finish(request, sorted(known.number for known in snapshots(self._home)))
            return
        headers = Headers()
        until = wire.until(request.method.decode(), request.path.decode("latin-1"), time.monotonic() - ON_ITS_WAY)
        for field, text in (wire.principal_headers(who) | until).items():
            headers.addRawHeader(field, text)
        body = FileBodyProducer(request.content) if request.method == b"POST" else None
        asked = self._agent.request(request.method, b"http://ironcurtain" + request.uri, headers, body)
        request.notifyFinish().addErrback(lambda _: asked.cancel())
        response = await asked
        request.setResponseCode(response.code)
        for name in (b"content-type", b"content-length"):
            if values := response.headers.getRawHeaders(name):
                request.responseHeaders.setRawHeaders(name, values)
        response.deliverBody(_Body(request))

    def _task(self, host: Host, task: str, what: bytes, said: bytes) -> object:
        if what == b"take":
            return self._tasks.change(task, lambda known: known.take(host.name, time.time())).body
        if what == b"begin":
            self._tasks.change(task, lambda known: known.begin(host.name))
            return {}
        try:
            started = msgspec.json.decode(said, type=Started)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UsageError("the body is wrong") from None
        self._tasks.change(task, lambda known: known.report(host.name, started))
        return {}

    def _list(self, request: Request, host: Host) -> None:
        if not any(Role.VIEW in roles or Role.ADMIN in roles for roles in host.people.values()):
            raise NotAllowed(f"nobody of {host.name} may view the sessions here")
        _finish(request, [process for _, process in processes(self._home).values()])

    def _file(self, request: Request, session: str, name: str) -> None:
        path = session_directory(self._home, session).directory / name
        request.setHeader("content-type", "application/octet-stream")
        try:
            file = path.open("rb")
        except FileNotFoundError:  # nothing was written yet
            request.finish()
            return
        size, begin = file.seek(0, os.SEEK_END), request.args.get(b"from", [b""])[0]
        start = min(size, int(begin)) if _PLACE.fullmatch(begin) else max(0, size - FILE_LIMIT)
        left = min(size - file.seek(start), FILE_LIMIT)  # it can grow meanwhile
        sent = FileSender().beginFileTransfer(_Beginning(file, left), request)
        sent.addBoth(self._sent, file, request)

    def _sent(self, result: object, file: BinaryIO, request: Request) -> None:
        file.close()
        if not request.finished and request.channel is not None:
            if isinstance(result, Failure):
                request.loseConnection()
            else:
                request.finish()

    def _failed(self, failure: Failure, request: Request) -> None:
        if request.finished or request.channel is None:
            return
        error = failure.value
        if not isinstance(error, IronCurtainError):
            self.log.failure("a request of the fleet failed", failure)
            error = Unavailable("the process of the session does not answer")
        request.setResponseCode(wire.error_status(error))
        request.setHeader("content-type", "application/json")
        request.write(wire.error_body(error))
        request.finish()


def _finish(request: Request, answer: object) -> None:
    request.setHeader("content-type", "application/json")
    request.write(msgspec.json.encode(answer))
    request.finish()


class _Beginning:
    """So many bytes of a file, and no more."""

    def __init__(self, file: BinaryIO, left: int) -> None:
        self._file, self._left = file, left

    def read(self, count: int) -> bytes:
        data = self._file.read(min(count, self._left))
        self._left -= len(data)
        return data


class _Body(Protocol):
    """Writes the body of a response to whoever asked, as fast as they read."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def connectionMade(self) -> None:
        if IPushProducer.providedBy(self.transport):
            self._request.registerProducer(self.transport, True)
        self._request.notifyFinish().addErrback(self._left)

    def _left(self, _: Failure) -> None:
        self.transport.stopProducing()  # type: ignore[union-attr]

    def dataReceived(self, data: bytes) -> None:
        self._request.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._request.unregisterProducer()
        if self._request.finished or self._request.channel is None:
            return
        if reason.check(ResponseDone):
            self._request.finish()
        else:
            self._request.loseConnection()
