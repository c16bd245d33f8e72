"""All backends of a session: merge their lists, forward their notifications, answer their requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from ironcurtain.audit import AuditLog
from ironcurtain.errors import IronCurtainError
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy import results
from ironcurtain.mcp_proxy.backend import Backend, BackendFailed, OnProgress
from ironcurtain.mcp_proxy.calls import PathRewriter
from ironcurtain.mcp_proxy.catalogue import KINDS, TOOLS, Catalogue, CatalogueKind, Sighting, ToolDefinition, fetch_all
from ironcurtain.mcp_proxy.faults import ServerFaults
from ironcurtain.mcp_proxy.pins import SessionPins, withheld_notice
from ironcurtain.mcp_proxy.questions import AgentLink, Questions
from ironcurtain.mcp_proxy.server_calls import Remind
from ironcurtain.mcp_proxy.server_fields import AgentRequest

REFRESH_SECONDS = 0.2
"""Minimum seconds between two fetches of the same list, however often the server reports a change."""

WATCH_SECONDS = 1.0
"""Seconds between checks whether a person has accepted withheld definitions, while there are any."""

ABOVE_ERROR = ("critical", "alert", "emergency")
"""Levels of log messages that are more severe than ``error`` (RFC 5424)."""

UPDATED = "notifications/resources/updated"

FORM_COMPLETE = "notifications/elicitation/complete"


class ConnectedAgent(AgentLink, Protocol):
    """One agent's connection, as the backends use it."""

    subscriptions: dict[str, tuple[str, str]]
    """Its subscribed resources: by the agent's URI, the server and the server's URI."""

    @property
    def version(self) -> str:
        """The negotiated protocol revision."""

    def listens_to(self, uri: str) -> bool:
        """Whether an open ``subscriptions/listen`` request asked for a resource."""

    def tell(self, method: str, params: bytes | None) -> None:
        """Send a notification, after the handshake if that is not complete."""


class Backends:
    """
    :param backends: in the order of their configuration.
    :param questions: answers the servers' requests.
    :param pins: decides which tool definitions are in force.
    :param tell: called with a message for the user.
    :param faults: records what servers send that breaks the protocol.
    :param failed: called with the name of a server that went down or did not start, and the reason, unless the reason
        is unchanged. Returns the reason in words that may be shown.
    """

    log = Logger()

    def __init__(
        self,
        backends: Sequence[Backend],
        questions: Questions,
        *,
        audit: AuditLog,
        rewriter: PathRewriter,
        clock: IReactorTime,
        pins: SessionPins,
        tell: Callable[[str], None],
        faults: ServerFaults,
        failed: Callable[[str, str], str],
    ) -> None:
        self.catalogue = Catalogue([backend.name for backend in backends], rewriter.text, pins.see)
        self.agents: list[ConnectedAgent] = []
        self.level: str | None = None
        """The lowest severity of log messages that an agent asked for."""
        self._backends = {backend.name: backend for backend in backends}
        self._questions, self._audit, self._rewriter, self._clock = questions, audit, rewriter, clock
        self._pins, self._tell_person, self._faults, self._report = pins, tell, faults, failed
        self.failures: dict[str, str] = {}
        """Why servers are down, by name; without servers that have not been started yet."""
        self._reported: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._stopping = False
        self._watch = LoopingCall(self.look_again)
        self._watch.clock = clock
        self._unsettled = set(self._backends)
        self._started = clock.seconds()
        self._waiting: list[tuple[frozenset[str], Deferred[None]]] = []
        self._agent_capabilities: Mapping[str, Any] | None = None
        self._agent_waiting: list[tuple[str, Deferred[None]]] = []
        self._callers: dict[str, ConnectedAgent] = {}
        self._refreshing: dict[tuple[str, str], bool] = {}
        self._refreshes: set[Deferred[None]] = set()

    async def start(self) -> None:
        """Start all backends, without waiting for them."""
        self._started = self._clock.seconds()
        for backend in self._backends.values():
            await backend.start(self)

    async def stop(self) -> None:
        """Stop all backends concurrently."""
        self._stopping = True
        self._stop_watching()
        for refresh in list(self._refreshes):
            refresh.cancel()
        stops = [Deferred.fromCoroutine(backend.stop()) for backend in self._backends.values()]
        for failed, reason in await DeferredList(stops, consumeErrors=True):
            if not failed:
                self.log.failure("an MCP server did not stop cleanly", reason)

    async def settled(self, seconds: float, servers: Iterable[str] | None = None) -> None:
        """
        Wait until each backend is up or failed to start, but at most so many seconds after :meth:`start`.

        :param servers: the names of those to wait for; ``None`` for all.
        """
        left = self._started + seconds - self._clock.seconds()
        names = frozenset(self._backends if servers is None else servers)
        if names & self._unsettled and left > 0:
            done: Deferred[None] = Deferred()
            self._waiting.append((names, done))
            try:
                await done.addTimeout(left, self._clock)
            except Late:
                late = ", ".join(sorted(names & self._unsettled))
                self.log.info("continuing without MCP servers that are not up yet: {names}", names=late)

    def starting(self) -> dict[str, str]:
        """:returns: for each server that is still starting, why it is not ready, if it shows; see :attr:`failures`."""
        starting = {name: backend.oddity for name, backend in self._backends.items() if name in self._unsettled}
        return {name: odd and f"is not ready yet; instead of messages it sent {odd}" for name, odd in starting.items()}

    def sound(self, server: str, method: str, part: str, raw: bytes, params: Mapping[str, Any]) -> bytes:
        """
        :param part: what was called, for the record of faults.
        :param raw: JSON of a server's result.
        :returns: a result that clients accept.
        :raises InvalidMessage: it is not an object.
        """
        mended, faults = results.mended(method, raw, params)
        for fault in faults:
            self._faults.add(server, method, f"{method} {part}: {fault}")
        return mended

    def get(self, server: str) -> Backend:
        """:raises BackendFailed: there is no such server."""
        if (backend := self._backends.get(server)) is None:
            raise BackendFailed(f"there is no MCP server {server}")
        return backend

    def up(self) -> list[Backend]:
        """:returns: the backends that are up."""
        return [backend for backend in self._backends.values() if backend.introduction is not None]

    def having(self, capability: str) -> list[Backend]:
        """:returns: the running backends with a capability."""
        return [b for b in self.up() if b.introduction is not None and capability in b.introduction.capabilities]

    @property
    def complete(self) -> bool:
        """Whether no backend is still starting."""
        return not self._unsettled

    def tools(self) -> list[ToolDefinition]:
        """:returns: the tools that can be called now."""
        return list(self.catalogue.offered.values())

    def look_again(self) -> None:
        """Use the definitions that a person has accepted since the last check."""
        if not self._watch.running:
            return
        for server in self.catalogue.withholding():
            try:
                if self._pins.changed(server):
                    self._record(server, self.catalogue.pin_again(server))
                    self._tell_all(TOOLS.changed, None)
            except IronCurtainError as e:
                self.log.warn("tools of MCP server {name} stay withheld: {error}", name=server, error=e)
        if not self.catalogue.withholding():
            self._stop_watching()

    # Agents

    def join(self, agent: ConnectedAgent) -> None:
        """Add an agent, which sent its first request."""
        if agent not in self.agents:
            self.agents.append(agent)
        self._agent_is(agent.capabilities)

    def without_agents(self) -> None:
        """No agent will connect, so no server waits for one."""
        self._agent_is({})

    def _agent_is(self, capabilities: Mapping[str, Any]) -> None:
        if self._agent_capabilities is not None:
            return
        self._agent_capabilities = capabilities
        waiting, self._agent_waiting = self._agent_waiting, []
        if waiting:  # their time begins now
            self._started = self._clock.seconds()
            self._unsettled.update(name for name, _ in waiting)
        for _, known in waiting:
            known.callback(None)

    def leave(self, agent: ConnectedAgent) -> None:
        """Remove an agent, whose connection ended."""
        if agent in self.agents:
            self.agents.remove(agent)
        self._callers = {server: caller for server, caller in self._callers.items() if caller is not agent}
        for server, uri in agent.subscriptions.values():
            self.unsubscribe(server, uri)

    def calling(self, server: str, agent: ConnectedAgent) -> None:
        """Note which agent is about to call a server: the server's next requests are for this agent."""
        self._callers[server] = agent

    async def request(
        self, server: str, method: str, params: Mapping[str, Any], remind: Remind | None, on_progress: OnProgress | None
    ) -> bytes:
        """
        Send a request for an agent, as :meth:`Backend.request` does.

        :param remind: called while it waits for a person, whom the server asks.
        """
        backend = self.get(server)
        return await self._questions.during(server, lambda: backend.request(method, params, on_progress), remind)

    def unsubscribe(self, server: str, uri: str) -> Deferred[None]:
        """Unsubscribe from a resource if no agent is subscribed to it."""
        if (server, uri) in self._subscriptions():
            return succeed(None)
        return self._quietly(server, "resources/unsubscribe", {"uri": uri})

    def set_level(self, backend: Backend) -> Deferred[None]:
        """Send a backend the minimum severity of log messages."""
        return self._quietly(backend.name, "logging/setLevel", {"level": self.level})

    def pause(self, yes: bool) -> None:
        """Stop or resume reading from all backends, depending on whether any agent reads."""
        for backend in self._backends.values():
            if yes:
                backend.pause()
            else:
                backend.resume()

    # Events of backends

    async def capabilities(self, backend: Backend) -> Mapping[str, Any]:
        """The capabilities to announce to a backend; for some backends they depend on the agent."""
        if self._questions.waits_for_agent(backend.name) and self._agent_capabilities is None:
            known: Deferred[None] = Deferred()
            self._agent_waiting.append((backend.name, known))
            self._settle(backend)  # an agent that starts must not wait for what waits for the agent
            await known
        return self._questions.capabilities(backend.name, self._agent_capabilities or {})

    async def came_up(self, backend: Backend) -> None:
        """A backend is up: fetch its lists, and restore the state of its previous run."""
        self.failures.pop(backend.name, None)
        for kind in KINDS:
            await self._load(backend, kind)
        if self.level is not None and backend in self.having("logging"):
            self.set_level(backend)
        for server, uri in self._subscriptions():
            if server == backend.name:
                self._quietly(server, "resources/subscribe", {"uri": uri})
        for changed in dict.fromkeys(kind.changed for kind in KINDS if backend in self.having(kind.capability)):
            self._tell_all(changed, None)
        self._settle(backend)

    def went_down(self, backend: Backend, why: str) -> None:
        """A backend is down. Its lists stay, since it will be restarted."""
        if not self._stopping:
            if self._reported.get(backend.name) != why:
                self._reported[backend.name] = why
                self._shown[backend.name] = self._report(backend.name, why)
            self.failures[backend.name] = self._shown[backend.name]
        self._settle(backend)

    def tell_failures(self, agent: ConnectedAgent) -> None:
        """Send an agent log messages that say which servers are down, and why."""
        if self.level in ABOVE_ERROR:
            return
        for server, why in self.failures.items():
            text = f"The MCP server {server} {why}. Its tools cannot be called until it is up."
            said = codec.encode({"level": "error", "logger": "ironcurtain", "data": text})
            agent.tell("notifications/message", self._rewriter.raw(said))

    def notified(self, backend: Backend, method: str, params: bytes | None) -> None:
        """A backend sent a notification. Forward it to the agents; if a list changed, fetch the list first."""
        kinds = [kind for kind in KINDS if kind.changed == method]
        if kinds:
            refresh = Deferred.fromCoroutine(self._refresh(backend, kinds))
            self._refreshes.add(refresh)
            refresh.addBoth(lambda _: self._refreshes.discard(refresh))
        elif method == FORM_COMPLETE:
            return  # agents never see what a server asks a person
        elif method == UPDATED:
            self._tell((agent for agent in self.agents if _hears(agent, backend.name)), method, params)
        else:
            self._tell_all(method, params)

    async def asked(self, backend: Backend, method: str, params: bytes | None) -> bytes:
        """A backend sent a request."""
        return await self._questions.answer(backend.name, method, params, self._agent_for)

    def _agent_for(self, server: str, kind: AgentRequest) -> AgentLink | None:
        caller = self._callers.get(server)
        ordered = [caller, *self.agents] if caller is not None else self.agents
        return next((agent for agent in ordered if isinstance(agent.capabilities.get(kind), dict)), None)

    async def _refresh(self, backend: Backend, kinds: Sequence[CatalogueKind]) -> None:
        key = (backend.name, kinds[0].method)
        if key in self._refreshing:
            self._refreshing[key] = True
            return
        self._refreshing[key] = True
        try:
            while self._refreshing[key]:
                self._refreshing[key] = False
                for kind in kinds:
                    await self._load(backend, kind)
                self._tell_all(kinds[0].changed, None)
                await deferLater(self._clock, REFRESH_SECONDS)
        except IronCurtainError as e:
            self.log.warn("the lists of MCP server {name} are not known: {error}", name=backend.name, error=e)
        finally:
            del self._refreshing[key]

    async def _load(self, backend: Backend, kind: CatalogueKind) -> None:
        name, (entries, lacking) = backend.name, await fetch_all(backend, kind)
        self._record(name, self.catalogue.take(name, kind, entries))
        faults = self.catalogue.faults.get((name, kind.method), [])
        self._faults.replace(name, kind.method, [*([lacking] if lacking else []), *faults])
        if kind is TOOLS and self.catalogue.withholding() and not self._watch.running:
            self._watch.start(WATCH_SECONDS, now=False)

    def _record(self, server: str, sightings: Sequence[Sighting]) -> None:
        if not sightings:
            return
        seen = [
            {"tool": s.tool, "digest": s.digest, "held": s.withheld, **({"acceptedBy": s.by} if s.by else {})}
            for s in sightings
        ]
        self._audit.append("tools", server=server, tools=seen)
        if held := [s.tool for s in sightings if s.withheld is not None]:
            self._tell_person(withheld_notice(server, held))

    def _stop_watching(self) -> None:
        if self._watch.running:
            self._watch.stop()

    def _settle(self, backend: Backend) -> None:
        self._unsettled.discard(backend.name)
        waiting, self._waiting = self._waiting, []
        for names, done in waiting:
            if names & self._unsettled:
                self._waiting.append((names, done))
            elif not done.called:
                done.callback(None)

    def _tell_all(self, method: str, params: bytes | None) -> None:
        self._tell(self.agents, method, params)

    def _tell(self, agents: Iterable[ConnectedAgent], method: str, params: bytes | None) -> None:
        mapped = None if params is None else self._rewriter.raw(params)
        for agent in list(agents):
            agent.tell(method, mapped)

    def _subscriptions(self) -> set[tuple[str, str]]:
        return {subscribed for agent in self.agents for subscribed in agent.subscriptions.values()}

    def _quietly(self, server: str, method: str, params: Mapping[str, Any]) -> Deferred[None]:
        async def ask() -> None:
            try:
                await self.get(server).request(method, params)
            except IronCurtainError as e:
                self.log.info("MCP server {name} refused {method}: {error}", name=server, method=method, error=e)

        return Deferred.fromCoroutine(ask())


def _hears(agent: ConnectedAgent, server: str) -> bool:
    return any(name == server for name, _ in agent.subscriptions.values())
