"""The MCP proxy of one session: assembles servers, gate, router and listeners."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import Unavailable
from ironcurtain.escalation.model import Change, Revoked
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.backends import Backends
from ironcurtain.mcp_proxy.calls import CallEvent, PathRewriter
from ironcurtain.mcp_proxy.channel import Child, ChildReactor, MakeChannel, way_to
from ironcurtain.mcp_proxy.connection import AgentConnection
from ironcurtain.mcp_proxy.downloads import Place, install
from ironcurtain.mcp_proxy.faults import ServerFaults
from ironcurtain.mcp_proxy.gate import Gate, GateLimits
from ironcurtain.mcp_proxy.hooks import Hooks
from ironcurtain.mcp_proxy.launch import OWN_SERVERS, Ground, is_own, needed_download, prepare
from ironcurtain.mcp_proxy.listeners import AgentConnections, ListenerReactor, accept, listen_unix, serve_stdio
from ironcurtain.mcp_proxy.logins import LoginFiles
from ironcurtain.mcp_proxy.memory import CallMemory
from ironcurtain.mcp_proxy.missing import Missing
from ironcurtain.mcp_proxy.network_gate import NO_OFFERS, Listed, NetworkGate, RefusedConnection
from ironcurtain.mcp_proxy.obstacles import doubt, obstacle
from ironcurtain.mcp_proxy.pins import PinFiles, SessionPins
from ironcurtain.mcp_proxy.questions import Questions
from ironcurtain.mcp_proxy.restarting import LogLine, RestartingBackend
from ironcurtain.mcp_proxy.router import Router
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, ServerConfig
from ironcurtain.mcp_proxy.workspace_guard import WorkspaceGuard
from ironcurtain.network.gateway import Gateway, WayOut
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.network.listed import ListedJudge
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.network import server_party
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.secrets.redaction import Redactor, Secret, may_be_secret
from ironcurtain.services.stream import Wrap
from ironcurtain.services.unix_socket import UnixListener
from ironcurtain.text.display import one_line

END_SECONDS = 5.0
"""Seconds after a server's time to start within which the proxy knows that it has failed."""

REASON_LIMIT = 4000
"""Maximum length in characters of the reason why a server is down; advice on sandboxes takes some 2000."""


class McpReactor(ChildReactor, ListenerReactor, IReactorFromThreads):
    """The parts of a reactor that the proxy needs."""


class McpSurroundings(msgspec.Struct, frozen=True):
    """
    What a proxy uses of the process and the machine.

    :param ground: the environment of servers.
    :param secret_command: runs a shell command and returns its output, for ``env_command`` and ``headers_command``.
    :param new_id: returns ids of calls, unique in the session's audit log.
    :param pins: the pinned definitions of this home.
    :param logins: the kept logins at servers.
    :param proxies: upstream proxies of servers behind HTTP.
    :param tell: called with a message for the user.
    :param server_down: called with the name of a server that is down, and the reason.
    :param starting: called with since when servers start that take long, in seconds of the reactor's clock, whenever
        there are others.
    :param log_line: called with each line of a server's standard error, and the server's name.
    :param way_out: for servers whose sandboxes have a network.
    """

    reactor: McpReactor
    ground: Ground
    secret_command: Callable[[str], Awaitable[Secret]]
    new_id: Callable[[], str]
    pins: PinFiles
    logins: LoginFiles
    proxies: UpstreamProxies
    tell: Callable[[str], None]
    server_down: Callable[[str, str], None]
    starting: Callable[[Mapping[str, float]], None]
    log_line: LogLine
    way_out: WayOut


class McpProxy:
    """
    One session's proxy.

    :param servers: the MCP servers. :meth:`start` starts them; they are restarted when they fail.
    :param redactor: learns the secrets of servers.
    :param events: called with each event of a call.
    :param has_snapshot: returns whether there is a snapshot to which the workspace can be restored.
    :param history: what happened before the session was resumed, with times of the reactor's clock.
    :param end: called with the reason when the session must not go on.
    :param refused: called with each connection that is refused, and each request.
    :param hooks: the user's own programs that are asked about calls of tools.
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
        has_snapshot: Callable[[], bool] = lambda: False,
        history: CallHistory = NO_HISTORY,
        end: Callable[[str], None] = lambda why: None,
        refused: Callable[[RefusedConnection], None] = lambda refused: None,
        hooks: Hooks | None = None,
    ) -> None:
        def appeared(path: str, why: str) -> None:
            audit.append("protected-path-appeared", path=path)
            surroundings.tell(why)

        ground = surroundings.ground
        self.guard = WorkspaceGuard(ground.workspace, ground.protected, surroundings.reactor, appeared, end)
        """Says when nothing may be passed on any more."""
        self._around, self._paths, self._redactor = surroundings, paths, redactor
        self._missing: dict[str, Missing] = {}
        self._faults = ServerFaults(self._faulty)
        self.open_hosts = engine.open_hosts
        """The patterns of hosts to which any program may connect without a question."""
        self._start_seconds = {server.name: server.start_seconds for server in servers if server.name in engine.named}
        commands = (server for server in servers if isinstance(server, CommandServer))
        self.sandbox = "" if ground.kind is None else ground.kind.value
        """The kind of the servers' sandboxes; empty if none can be made."""
        self.unsandboxed = tuple(server.name for server in commands if server.sandbox is None)
        """Names of the servers that run outside any sandbox."""
        reactor, rewriter = surroundings.reactor, PathRewriter(paths)
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
            has_snapshot=has_snapshot,
        )
        questions = Questions(
            root=f"file://{quote(paths.host)}",
            allowed={server.name: server.agent_requests for server in servers},
            admission=self._admission,
            rewriter=rewriter,
            clock=reactor,
            tell=surroundings.tell,
            policy_version=lambda: engine.policy_version,
            stopped=self.guard.look,
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
            faults=self._faults,
            slow=surroundings.starting,
            failed=self._failed,
        )
        memory = CallMemory(reactor.seconds, history)
        self.gate = Gate(
            engine=engine,
            admission=self._admission,
            backends=self._backends,
            rewriter=rewriter,
            clock=reactor,
            limits=limits or GateLimits(),
            memory=memory,
            session_id=session_id,
            stopped=self.guard.look,
            hooks=hooks,
        )
        """Judges and makes every call, also those of code mode."""
        self._network = NetworkGate(
            engine=engine,
            admission=self._admission,
            memory=memory,
            clock=reactor,
            durable=limits is not None and limits.durable,
            stopped=self.guard.look,
            refused=refused,
        )
        escalations.subscribe(self._approvals_changed)
        self._router = Router(self.gate, self._backends, rewriter)
        self._connections = AgentConnections(self._backends.pause, self._backends.leave)
        self._listeners: list[UnixListener] = []

    @property
    def failures(self) -> dict[str, str]:
        """Why servers are down, by name; of those that are still starting, only if it shows why they are not ready."""
        starting = {server: self._shown(why) for server, why in self._backends.starting().items() if why}
        return {**starting, **self._backends.failures}

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        """What servers sent that breaks the protocol, in sentences, by name."""
        return self._faults.shown()

    async def ready(self, seconds: float, patient: bool, waiting: Callable[[list[str]], None]) -> dict[str, str]:
        """
        Wait until every server is up or has failed to start, but at most so many seconds after :meth:`start`.

        :param patient: wait longer for the servers that the policy names: as long as each of them may take to start.
        :param waiting: called with their names if that is necessary.
        :returns: for each server that is still starting, why it is not ready, if it shows.
        """
        await self.gate.settled(seconds)
        if late := [name for name in self._backends.starting() if patient and name in self._start_seconds]:
            waiting(late)
            for name in late:
                await self._backends.settled(self._start_seconds[name] + END_SECONDS, [name])
        return {server: self._shown(why) for server, why in self._backends.starting().items()}

    async def start(self) -> None:
        """
        Start the servers in the background; :meth:`Gate.settled` waits for them.

        :raises UsageError: a protected path is in the workspace.
        """
        self.guard.start()
        await self._backends.start()

    async def listen(self, path: Path, owner: tuple[int, int] | None = None) -> None:
        """
        Accept agents on a UNIX socket.

        :param owner: uid and gid of the agent, if not those of this process.
        :raises ConfigurationError: the path is too long.
        :raises Unavailable: another file is at the path.
        """
        self._listeners.append(await listen_unix(path, self._connection, owner))

    async def accept(self, listening: socket.socket, wrap: Wrap) -> asyncio.Server:
        """
        Accept agents on a TCP socket, which everyone of this machine can reach.

        :param listening: bound; owned by the server from now on, and closed if this fails.
        :param wrap: returns a factory that lets only the right clients through.
        """
        return await accept(listening, self._connection, wrap)

    def without_agents(self) -> None:
        """No agent will connect to a socket or standard input: calls come by :attr:`gate` only."""
        self._backends.without_agents()

    def network_judge(
        self, party: str, listed: Listed | None = None, offers: Mapping[tuple[str, int], str] = NO_OFFERS
    ) -> NetworkJudge:
        """
        :param party: who wants connections, in words for people: "the agent", "server NAME", "shell".
        :param listed: see :data:`~ironcurtain.mcp_proxy.network_gate.Listed`.
        :param offers: what an approval opens in place of a host and port, in words.
        :returns: what decides about them.
        """
        return self._network.judge(party, listed, offers)

    @property
    def alive(self) -> bool:
        """Whether all sockets still accept agents."""
        return all(listener.alive for listener in self._listeners)

    def serve_stdio(self, stdin: int = 0, stdout: int = 1) -> Deferred[None]:
        """
        Serve one agent on standard input and output.

        :returns: fires when it disconnects.
        """
        return serve_stdio(self._around.reactor, self._connection, stdin, stdout)

    async def stop(self) -> None:
        """Stop listening, cancel calls, end the connections, stop the servers."""
        self.guard.stop()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.stop()
        await self._connections.close()
        await self._backends.stop()
        self._network.close()
        self._admission.flush()

    def _approvals_changed(self, change: Change) -> None:
        if isinstance(change, Revoked):
            self._network.forget_approvals()

    def _connection(self, gone: Callable[[AgentConnection], bool]) -> AgentConnection:
        return AgentConnection(self._router, self._connections, self._around.reactor, gone)

    def _backend(self, server: ServerConfig) -> RestartingBackend:
        for secret in server.reading.secrets:
            self._redactor.add(secret)
        for name, value in server.environment.items() if isinstance(server, CommandServer) else ():
            if may_be_secret(name, value):
                self._redactor.add(Secret(value, f"variable {name} of the server {server.name}"))
        prepare = partial(self._by_http, server) if isinstance(server, HttpServer) else partial(self._run, server)
        return RestartingBackend(
            server.name,
            self._around.reactor,
            prepare,
            self._log_line,
            server.start_seconds,
            call_seconds=server.call_seconds,
        )

    async def _run(self, server: CommandServer) -> MakeChannel:
        self._check(server)
        secrets = await self._secrets(server.environment_commands)
        revealed, ground = {name: secret.reveal() for name, secret in secrets.items()}, self._around.ground
        if is_own(server) and server.args[:3] == OWN_SERVERS[1]:
            revealed |= await self._around.proxies.variables()
        download, needed = needed_download(server, ground), None
        if download is not None and ground.downloads is not None:
            place = Place(ground.downloads, ground.environ, ground.account, ground.kind)
            tell = partial(self._log_line, server.name)
            server, needed = await install(download, server, place, self._around.reactor, self._around.way_out, tell)
        launch = prepare(server, revealed, ground, needed)
        is_first = self._missing.pop(server.name, None) is None
        if launch.sandbox is not None:
            self._missing[server.name] = Missing(server.name, launch.sandbox)
            if is_first and (why := doubt(server, launch.sandbox.kind)) is not None:
                self._around.tell(f"MCP server {server.name}: {why}")
        return partial(Child, self._around.reactor, launch, self._gateway(server))

    def _gateway(self, server: CommandServer) -> Gateway | None:
        if server.sandbox is None or not server.sandbox.access:
            return None
        where = f'"network" of server {server.name} in mcp-servers.json'
        judge = ListedJudge(server.sandbox.access, where, self.network_judge(server_party(server.name)))
        return self._around.way_out.gateway(server.sandbox.access, judge, partial(self._log_line, server.name))

    async def _by_http(self, server: HttpServer) -> MakeChannel:
        self._check(server)
        secrets = await self._secrets(server.header_commands)
        around = self._around
        return await way_to(server, secrets, around.logins, self._redactor, around.reactor, around.proxies)

    def _check(self, server: ServerConfig) -> None:
        if (why := obstacle(server, self._around.ground)) is not None:
            raise Unavailable(f"MCP server {server.name}: {why}")

    async def _secrets(self, commands: Mapping[str, str]) -> dict[str, Secret]:
        secrets = {name: await self._around.secret_command(command) for name, command in commands.items()}
        for secret in secrets.values():
            self._redactor.add(secret)
        return secrets

    def _shown(self, why: str) -> str:
        return one_line(self._redactor.text(why), REASON_LIMIT)

    def _faulty(self, server: str, sentence: str) -> str:
        shown = self._shown(sentence)
        self._around.tell(f"MCP server {server}: {shown}")
        return shown

    def _failed(self, server: str, why: str) -> str:
        if (missing := self._missing.get(server)) is not None and missing.last:
            why = f"{why}; {missing.last}"
        shown = self._shown(why)
        self._around.server_down(server, shown)
        return shown

    def _log_line(self, server: str, line: str) -> None:
        self._around.log_line(server, self._redactor.text(line))
        missing = self._missing.get(server)
        if missing is not None and (hint := missing.hint(line)) is not None:
            self._around.log_line(server, hint)
