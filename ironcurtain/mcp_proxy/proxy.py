"""The MCP proxy of one session, put together: servers, gate, router and where agents come in."""

from __future__ import annotations

import select
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IAddress, IReactorFDSet, IReactorFromThreads, IReactorTime
from twisted.internet.protocol import ServerFactory
from twisted.internet.stdio import StandardIO
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.audit import AuditLog
from ironcurtain.escalation import EscalationQueue
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.backends import Backends
from ironcurtain.mcp_proxy.calls import CallEvent, PathRewriter
from ironcurtain.mcp_proxy.channel import Child, ChildReactor, MakeChannel, way_to
from ironcurtain.mcp_proxy.connection import AgentConnection
from ironcurtain.mcp_proxy.downloads import Download, download_of, in_background, installed
from ironcurtain.mcp_proxy.gate import Gate, GateLimits
from ironcurtain.mcp_proxy.launch import Ground, Missing, is_own, prepare
from ironcurtain.mcp_proxy.pins import PinFiles, SessionPins
from ironcurtain.mcp_proxy.questions import Elicit, Questions
from ironcurtain.mcp_proxy.restarting import LogLine, RestartingBackend
from ironcurtain.mcp_proxy.router import Router
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, ServerConfig
from ironcurtain.policy import PolicyEngine
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.secrets.redaction import Redactor, Secret, may_be_secret
from ironcurtain.services.unix_socket import UnixListener, listen
from ironcurtain.text.display import one_line


class AgentConnections:
    """
    The connections of one session, and whether any of them reads.

    :param pause: stops reading from all servers, or goes on.
    :param left: told of each connection that ended.
    """

    def __init__(self, pause: Callable[[bool], None], left: Callable[[AgentConnection], None]) -> None:
        self._pause, self._left = pause, left
        self._all: list[AgentConnection] = []
        self._paused = False
        self._empty: Deferred[None] | None = None

    def add(self, connection: AgentConnection) -> None:
        """A connection was made."""
        self._all.append(connection)

    def remove(self, connection: AgentConnection) -> None:
        """A connection ended."""
        if connection in self._all:
            self._all.remove(connection)
            self._left(connection)
            self.changed()
        if not self._all and self._empty is not None:
            empty, self._empty = self._empty, None
            empty.callback(None)

    def others_read(self, connection: AgentConnection) -> bool:
        """Whether another agent reads what it is sent."""
        return any(not c.choked for c in self._all if c is not connection and c.introduced)

    def changed(self) -> None:
        """A connection is choked, reads again, or ended: the servers wait while no agent reads."""
        introduced = [connection for connection in self._all if connection.introduced]
        paused = bool(introduced) and all(connection.choked for connection in introduced)
        if paused != self._paused:
            self._paused = paused
            self._pause(paused)

    async def close(self) -> None:
        """End all connections, and wait until they are gone."""
        for connection in list(self._all):
            connection.close()
        if self._all:
            self._empty = Deferred()
            await self._empty


POLL_RDHUP = getattr(select, "POLLRDHUP", 0)

Build = Callable[[Callable[[AgentConnection], bool]], AgentConnection]
"""Makes a connection; takes how to find out whether its peer has left altogether."""


class ListenerReactor(IReactorTime, IReactorFDSet):
    """The parts of a reactor that the listeners need."""


async def listen_unix(path: Path, build: Build, owner: tuple[int, int] | None = None) -> UnixListener:
    """
    Listen on a UNIX socket that only one uid may use.

    :param path: its directory is made if it is missing; a socket that a dead process left there is removed.
    :param owner: uid and gid of who may use it, if not we.
    :raises ConfigurationError: the path is too long.
    :raises Unavailable: others could replace the socket, or something else is in the way.
    """
    return await listen(path, _Connections(build, _hung_up), owner)


def serve_stdio(reactor: ListenerReactor, build: Build, stdin: int = 0, stdout: int = 1) -> Deferred[None]:
    """
    Serve the one agent that is at our standard input and output.

    :returns: fires when it has gone. The descriptors stay open: the process is expected to end.
    """
    connection = build(lambda _: False)
    _StandardStreams(connection, stdin, stdout, reactor)  # type: ignore[call-arg]  # mypy takes the one for Windows
    return connection.ended


class _StandardStreams(StandardIO):
    def abortConnection(self) -> None:
        """End at once, which Twisted's has no way for: it waits for ever to close an output that is closed already."""
        if not self.disconnected:
            self.connectionLost(Failure(ConnectionAborted()))  # type: ignore[attr-defined]  # as above


class _Connections(ServerFactory):
    noisy = False

    def __init__(self, build: Build, gone: Callable[[AgentConnection], bool]) -> None:
        self._build, self._gone = build, gone

    def buildProtocol(self, addr: IAddress | None) -> AgentConnection:
        return self._build(self._gone)


def _hung_up(connection: AgentConnection) -> bool:
    """Whether the peer closed its socket, and not only its sending half (poll(2): POLLHUP)."""
    descriptor: int = connection.transport.fileno()  # type: ignore[attr-defined]
    poll = select.poll()
    poll.register(descriptor, POLL_RDHUP)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


REASON_LIMIT = 500
"""Most characters of why a server is down."""


def _download(server: CommandServer, ground: Ground) -> Download | None:
    """:returns: what has to be downloaded before a server starts, as it has no network."""
    confined = server.sandbox is not None and not server.sandbox.domains and ground.downloads is not None
    return download_of(server) if confined else None


class McpReactor(ChildReactor, ListenerReactor, IReactorFromThreads):
    """The parts of a reactor that the proxy needs."""


@dataclass(frozen=True, slots=True)
class McpSurroundings:
    """
    What of the process and the machine a proxy uses.

    :param ground: what servers run on.
    :param secret_command: runs a shell command and gives what it prints, for ``env_command`` and ``headers_command``.
    :param new_id: gives ids of calls, unique in the session's audit log.
    :param pins: the definitions of tools that count in this home.
    :param tell: takes a sentence for the person whose session it is.
    :param server_down: takes the name of a server that is down, and why.
    :param log_line: takes each line of a server's error output, with the server's name.
    """

    reactor: McpReactor
    ground: Ground
    secret_command: Callable[[str], Awaitable[Secret]]
    new_id: Callable[[], str]
    pins: PinFiles
    tell: Callable[[str], None]
    server_down: Callable[[str, str], None]
    log_line: LogLine


class McpProxy:
    """
    One session's proxy.

    :param servers: the MCP servers, started with :meth:`start` and restarted when they fail.
    :param redactor: learns the secrets that servers are given.
    :param events: hears of each call.
    :param elicit: puts a server's question before a person; without, such questions are declined.
    """

    log = Logger()

    def __init__(
        self,
        *,
        session_id: str,
        servers: Sequence[ServerConfig],
        engine: PolicyEngine,
        audit: AuditLog,
        escalations: EscalationQueue,
        paths: PathMap,
        redactor: Redactor,
        surroundings: McpSurroundings,
        events: Callable[[CallEvent], None],
        limits: GateLimits | None = None,
        elicit: Elicit | None = None,
    ) -> None:
        self._around, self._paths, self._redactor = surroundings, paths, redactor
        self._missing: dict[str, Missing] = {}
        commands = (server for server in servers if isinstance(server, CommandServer))
        self.unsandboxed = tuple(server.name for server in commands if server.sandbox is None)
        """Names of the servers that run outside any sandbox."""
        reactor, rewriter = surroundings.reactor, PathRewriter(paths)
        questions = Questions(
            root=f"file://{quote(paths.host)}",
            allowed={server.name: server.agent_requests for server in servers},
            elicit=elicit,
            audit=audit,
            rewriter=rewriter,
        )
        own = frozenset(server.name for server in servers if isinstance(server, CommandServer) and is_own(server))
        self._backends = Backends(
            [self._backend(server) for server in servers],
            questions,
            audit=audit,
            rewriter=rewriter,
            clock=reactor,
            pins=SessionPins(surroundings.pins, own, surroundings.tell),
            tell=surroundings.tell,
            failed=self._failed,
        )
        self._admission = CallAdmission(
            session_id=session_id,
            audit=audit,
            escalations=escalations,
            clock=reactor,
            new_id=surroundings.new_id,
            policy_version=lambda: engine.policy_version,
            events=events,
            home=engine.home,
            shown=paths.to_agent,
        )
        self.gate = Gate(
            engine=engine,
            admission=self._admission,
            backends=self._backends,
            rewriter=rewriter,
            clock=reactor,
            limits=limits or GateLimits(),
        )
        """What judges and makes every call; code mode calls it too."""
        self._router = Router(self.gate, self._backends, rewriter)
        self._connections = AgentConnections(self._backends.pause, self._backends.leave)
        self._listeners: list[UnixListener] = []

    @property
    def failures(self) -> dict[str, str]:
        """Why servers are down, by their names."""
        return dict(self._backends.failures)

    async def start(self) -> None:
        """Start the servers. They come up in the background; :meth:`Gate.settled` waits for them."""
        await self._backends.start()

    async def listen(self, path: Path, owner: tuple[int, int] | None = None) -> None:
        """
        Let agents in at a UNIX socket.

        :param owner: uid and gid of who may use it, if not we.
        :raises ConfigurationError: the path is too long.
        :raises Unavailable: something is in the way.
        """
        self._listeners.append(await listen_unix(path, self._connection, owner))

    @property
    def alive(self) -> bool:
        """Whether agents still come in wherever they were let in."""
        return all(listener.alive for listener in self._listeners)

    def serve_stdio(self, stdin: int = 0, stdout: int = 1) -> Deferred[None]:
        """
        Serve the one agent at our standard input and output.

        :returns: fires when it has gone.
        """
        return serve_stdio(self._around.reactor, self._connection, stdin, stdout)

    async def stop(self) -> None:
        """Let nobody in, cancel what is under way, end the connections, stop the servers."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.stop()
        await self._connections.close()
        await self._backends.stop()
        self._admission.flush()

    def _connection(self, gone: Callable[[AgentConnection], bool]) -> AgentConnection:
        return AgentConnection(self._router, self._connections, self._around.reactor, gone)

    def _backend(self, server: ServerConfig) -> RestartingBackend:
        for name, value in server.environment.items() if isinstance(server, CommandServer) else ():
            if may_be_secret(name, value):
                self._redactor.add(Secret(value, f"variable {name} of the server {server.name}"))
        prepare = partial(self._by_http, server) if isinstance(server, HttpServer) else partial(self._run, server)
        return RestartingBackend(server.name, self._around.reactor, prepare, self._log_line)

    async def _run(self, server: CommandServer) -> MakeChannel:
        secrets = await self._secrets(server.environment_commands)
        revealed, ground = {name: secret.reveal() for name, secret in secrets.items()}, self._around.ground
        download, needed = _download(server, ground), None
        if download is not None and ground.downloads is not None:
            place = (ground.downloads, ground.environ, ground.account)
            work = partial(installed, download, server, *place)
            server, needed = await in_background(self._around.reactor, work)
        launch = prepare(server, revealed, ground, needed)
        self._missing.pop(server.name, None)
        if launch.sandbox is not None:
            self._missing[server.name] = Missing(server.name, launch.sandbox)
        return partial(Child, self._around.reactor, launch)

    async def _by_http(self, server: HttpServer) -> MakeChannel:
        return await way_to(server, await self._secrets(server.header_commands), self._redactor, self._around.reactor)

    async def _secrets(self, commands: Mapping[str, str]) -> dict[str, Secret]:
        secrets = {name: await self._around.secret_command(command) for name, command in commands.items()}
        for secret in secrets.values():
            self._redactor.add(secret)
        return secrets

    def _failed(self, server: str, why: str) -> str:
        shown = one_line(self._redactor.text(why), REASON_LIMIT)
        self._around.server_down(server, shown)
        return shown

    def _log_line(self, server: str, line: str) -> None:
        self._around.log_line(server, self._redactor.text(line))
        missing = self._missing.get(server)
        if missing is not None and (hint := missing.hint(line)) is not None:
            self._around.log_line(server, hint)
