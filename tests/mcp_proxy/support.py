"""A whole proxy for tests: real audit log, real escalation queue, real policy engine, real children."""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from ironcurtain.audit.log import AuditLog
from ironcurtain.escalation import Escalation, Outcome
from ironcurtain.escalation.model import Change, Raised
from ironcurtain.escalation.queue import EscalationQueue, closing_numbers
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.jsonrpc.framing import Framer
from ironcurtain.mcp_proxy.calls import CallEvent
from ironcurtain.mcp_proxy.gate import GateLimits
from ironcurtain.mcp_proxy.hooks import Hooks
from ironcurtain.mcp_proxy.launch import Ground
from ironcurtain.mcp_proxy.logins import LoginFiles
from ironcurtain.mcp_proxy.pins import PinFiles
from ironcurtain.mcp_proxy.proxy import McpProxy, McpSurroundings
from ironcurtain.mcp_proxy.server_fields import AgentRequest
from ironcurtain.mcp_proxy.servers_config import CommandServer, ServerConfig
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.gateway import WayOut
from ironcurtain.policy.annotations import Annotations, ServerAnnotations, ToolAnnotation
from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.loading import default_annotations
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.roles import Role
from ironcurtain.policy.rules import Conditions, Policy, Rule
from ironcurtain.secrets.redaction import Redactor, Secret
from ironcurtain.session.tools import server_bounds
from tests.http.direct import DIRECT
from tests.mcp_proxy.fake_server import TOOLS

the_reactor: Any = _reactor
FAKE_SERVER = Path(__file__).with_name("fake_server.py")
SESSION = "session-under-test"
PLAIN = (
    *(
        "a",
        "b",
        "big",
        "body",
        "count",
        "deep",
        "description",
        "float",
        "lines",
        "method",
        "mode",
        "n",
        "none",
        "params",
    ),
    *("round", "seconds", "size", "text", "time", "value", "values", "x"),
)
"""Arguments of the tools of the fake server that name nothing, though its schemas do not declare them."""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def fake_server(
    name: str = "fake",
    command: Mapping[str, str] | None = None,
    requests: frozenset[AgentRequest] = frozenset(),
    **environment: str,
) -> CommandServer:
    """:returns: the configuration of one fake server, whose habits are in its environment."""
    arguments = ("-S", str(FAKE_SERVER))
    # Outside a sandbox: its environment names files that tests share with it.
    program = (name, sys.executable, arguments, environment, command or {})
    return CommandServer(*program, cwd=".", sandbox=None, agent_requests=requests)


def sleep(seconds: float) -> Deferred[None]:
    """:returns: fires later, in real time."""
    return deferLater(the_reactor, seconds)


async def until(condition: Callable[[], bool], what: str = "it", seconds: float = 60.0) -> None:
    """Wait for something that other processes do."""
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await sleep(0.02)
    raise AssertionError(f"waited {seconds} s for {what}")


async def threads_are_over() -> None:
    """Wait for what threads do for a proxy that was stopped: they cannot be stopped, and read files."""
    await until(lambda: not the_reactor.getThreadPool().working, "threads")
    await sleep(0)  # their results


def memory() -> int:
    """:returns: how much memory this process uses now, in bytes (proc(5): ``statm``)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class RawAgent(Protocol):
    """A client that does exactly what it is told, whatever the protocol says."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.lost: Deferred[None] = Deferred()
        self._framer = Framer(128 * 1024 * 1024)
        self._ids = itertools.count(1)
        self._waiting: list[tuple[Callable[[dict[str, Any]], bool], Deferred[dict[str, Any]]]] = []

    def dataReceived(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            assert isinstance(line, bytes)
            self._take(json.loads(line))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost.callback(None)
        for _, waiter in self._waiting:
            waiter.errback(reason)

    def send(self, message: Any) -> None:
        """Send one message as JSON."""
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        assert self.transport is not None
        self.transport.write(data)

    def unsent(self) -> int:
        """:returns: how many bytes wait to be read by the proxy."""
        transport: Any = self.transport
        return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)

    def expect(self, fits: Callable[[dict[str, Any]], bool]) -> Deferred[dict[str, Any]]:
        """:returns: fires with the first message that fits, also one that came before."""
        for message in self.messages:
            if fits(message):
                self.messages.remove(message)
                return succeed(message)
        waiter: Deferred[dict[str, Any]] = Deferred()
        self._waiting.append((fits, waiter))
        return waiter.addTimeout(250, the_reactor)

    def answer_to(self, identifier: Any) -> Deferred[dict[str, Any]]:
        """:returns: fires with the answer to a request."""
        kind = type(identifier)
        return self.expect(lambda m: "method" not in m and m.get("id") == identifier and type(m.get("id")) is kind)

    def request(self, method: str, params: Any = None) -> Deferred[dict[str, Any]]:
        """:returns: fires with the whole answer."""
        identifier = next(self._ids)
        message = {"jsonrpc": "2.0", "id": identifier, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return self.answer_to(identifier)

    def tell(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method}
        self.send(message if params is None else {**message, "params": params})

    async def hello(self, **more: Any) -> dict[str, Any]:
        """:returns: the result of the whole handshake."""
        answer = await self.request("initialize", {**HELLO, **more})
        self.tell("notifications/initialized")
        return dict(answer["result"])

    async def call(self, name: str, arguments: Any = None, **more: Any) -> dict[str, Any]:
        """:returns: the answer to one tool call."""
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}, **more})

    def _take(self, message: dict[str, Any]) -> None:
        for entry in self._waiting:
            if entry[0](message):
                self._waiting.remove(entry)
                entry[1].callback(message)
                return
        self.messages.append(message)


class Bench:
    """One proxy in a directory of its own, with a policy that allows all tools but those that are named otherwise."""

    def __init__(
        self,
        servers: Sequence[ServerConfig],
        *,
        escalate: Sequence[str] = (),
        deny: Sequence[str] = (),
        annotate: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None,
        rules: Sequence[Rule] = (),
        attended: bool = True,
        limits: GateLimits | None = None,
        logins: LoginFiles | None = None,
        audit: Callable[[Path, Redactor], AuditLog] | None = None,
        environ: Mapping[str, str] | None = None,
        rest: bool = True,
        timeout: float = 300.0,
        clock: Any = None,
        ground: Callable[[Ground], Ground] = lambda ground: ground,
        pins: Path | None = None,
        history: CallHistory = NO_HISTORY,
        proxies: UpstreamProxies = DIRECT,
        hooks: bool = False,
    ) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.workspace = self.top / "sandbox"
        self.workspace.mkdir()
        self.hooks = self.top / "hooks"
        self.socket = self.top / "run" / "proxy.sock"
        self.told: list[str] = []
        self.ends: list[str] = []
        self.down: list[tuple[str, str]] = []
        self.starting: list[Mapping[str, float]] = []
        self.redactor, self.events, self.errors = Redactor(), list[CallEvent](), list[tuple[str, str]]()
        self.audit = (audit or self._audit)(self.top / "audit.jsonl", self.redactor)
        numbers, calls = itertools.count(1), itertools.count(1)
        self.escalations = EscalationQueue(
            next_number=lambda: succeed(next(numbers)),
            new_id=lambda: os.urandom(8).hex(),
            clock=the_reactor,
            now=time.time,
            next_closing=closing_numbers(time.time()),
            timeout=timeout,
            attended=lambda: attended,
        )
        self.paths = PathMap(str(self.workspace))
        self.engine = _engine(servers, self.paths, escalate, deny, annotate or {}, rules, rest)
        self.agents: list[RawAgent] = []
        self.proxy = McpProxy(
            session_id=SESSION,
            servers=servers,
            engine=self.engine,
            audit=self.audit,
            escalations=self.escalations,
            paths=self.paths,
            redactor=self.redactor,
            surroundings=McpSurroundings(
                reactor=the_reactor,
                ground=ground(
                    Ground(
                        dict(os.environ if environ is None else environ),
                        str(self.workspace),
                        writers=frozenset(server.name for server in servers),
                    )
                ),
                secret_command=lambda command: succeed(Secret(f"secret of {command}")),
                new_id=lambda: f"call-{next(calls)}",
                pins=PinFiles(self.top / "tool-definitions" if pins is None else pins, time.time),
                logins=logins or LoginFiles(self.top / "oauth"),
                proxies=proxies,
                tell=self.told.append,
                server_down=lambda server, why: self.down.append((server, why)),
                starting=self.starting.append,
                log_line=lambda server, line: self.errors.append((server, line)),
                way_out=WayOut(the_reactor, Dialer(the_reactor, the_reactor.nameResolver, DIRECT)),
            ),
            events=self.events.append,
            limits=limits,
            history=history,
            end=self.ends.append,
            hooks=Hooks(the_reactor, self.hooks, os.environ, 60.0, os.geteuid()) if hooks else None,
        )
        if clock is not None:
            self.proxy.gate.admission._clock = clock

    async def start(self) -> Bench:
        """Start the proxy on its socket."""
        await self.proxy.start()
        await self.proxy.listen(self.socket)
        return self

    async def agent(self, hello: bool = True, **more: Any) -> RawAgent:
        """:returns: one more agent, after its handshake."""
        agent: RawAgent = await connectProtocol(UNIXClientEndpoint(the_reactor, str(self.socket)), RawAgent())
        self.agents.append(agent)
        if hello:
            await agent.hello(**more)
        return agent

    def stopped(self) -> Deferred[None]:
        """Stop everything and leave nothing."""
        return Deferred.fromCoroutine(self.stop())

    def seen_by_server(self) -> list[dict[str, Any]]:
        """:returns: what a fake server with ``RECORD="record"`` was sent."""
        return [json.loads(line) for line in (self.workspace / "record").read_text().splitlines()]

    async def stop(self) -> None:
        """Stop everything and leave nothing."""
        await self.proxy.stop()
        for agent in self.agents:
            agent.transport.loseConnection()  # type: ignore[union-attr]
            await agent.lost
        self.escalations.withdraw_all()
        await self.audit.close()
        shutil.rmtree(self.top)

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """:returns: the audit log's records, of one kind if given."""
        self.proxy._admission.flush()
        lines = self.audit.path.read_text().splitlines()
        return [record for record in map(json.loads, lines) if kind in (None, record["kind"])]

    async def pending(self) -> Escalation:
        """:returns: the one escalation that is pending, or will be soon."""
        await until(lambda: bool(self.escalations.pending()), "an escalation")
        return self.escalations.pending()[0]

    def fill_in(self, content: Mapping[str, Any]) -> None:
        """From now on, a person fills in every form with these values."""

        def changed(change: Change) -> None:
            if isinstance(change, Raised) and change.escalation.request.form is not None:
                number = change.escalation.number
                the_reactor.callLater(0, self.escalations.answer, number, content, "tester")

        self.escalations.subscribe(changed)

    def permit(self) -> None:
        """From now on, a person approves every call."""

        def changed(change: Change) -> None:
            if isinstance(change, Raised) and change.escalation.request.form is None:
                the_reactor.callLater(0, self.escalations.decide, change.escalation.number, Outcome.APPROVED, "tester")

        self.escalations.subscribe(changed)

    async def decide(self, outcome: Outcome) -> None:
        """Answer the pending escalation."""
        self.escalations.decide((await self.pending()).number, outcome, "tester")

    def _audit(self, path: Path, redactor: Redactor) -> AuditLog:
        return AuditLog(path, SESSION, redactor, the_reactor, time.time, at_once)


def at_once(work: Callable[[], None]) -> Deferred[None]:
    """Do in this thread what others do in another."""
    work()
    return succeed(None)


def _plain(tool: str) -> dict[str, tuple[Role, ...]]:
    return {name: () for name in PLAIN if (tool, name) != ("file", "text")}


def _engine(
    servers: Sequence[ServerConfig],
    paths: PathMap,
    escalate: Sequence[str],
    deny: Sequence[str],
    annotate: Mapping[str, Mapping[str, tuple[str, ...]]],
    rules: Sequence[Rule],
    rest: bool,
) -> PolicyEngine:
    names = (*TOOLS, "renamed", *annotate)
    roles: Any = annotate
    annotations = {
        server.name: ServerAnnotations(
            tuple(ToolAnnotation(name, {**_plain(name), **roles.get(name, {})}) for name in names)
        )
        for server in servers
    }
    mine = [
        *rules,
        *(Rule(f"deny-{tool}", Conditions(tool=(tool,)), "deny", "not in tests") for tool in deny),
        *(Rule(f"ask-{tool}", Conditions(tool=(tool,)), "escalate", "a person decides") for tool in escalate),
        *([Rule("rest", Conditions(), "allow", "tests")] if rest else []),
    ]
    known = default_annotations().merged(Annotations(annotations))
    bounds = server_bounds(servers, paths.host)
    listed = {name: ServerBounds(bound.domains) for name, bound in bounds.items()}
    return PolicyEngine(Policy(tuple(mine)), known, paths=paths, home="/home/nobody", servers=listed)
