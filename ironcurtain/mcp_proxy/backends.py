"""All backends of a session: merge their lists, forward their notifications, answer their requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.audit.log import AuditLog
from ironcurtain.errors import IronCurtainError
from ironcurtain.mcp_proxy import results
from ironcurtain.mcp_proxy.backend import Backend, BackendFailed, OnProgress
from ironcurtain.mcp_proxy.calls import PathRewriter
from ironcurtain.mcp_proxy.catalogue import KINDS, TOOLS, Catalogue, ToolDefinition
from ironcurtain.mcp_proxy.connected_agents import ConnectedAgent, ConnectedAgents
from ironcurtain.mcp_proxy.faults import ServerFaults
from ironcurtain.mcp_proxy.pins import SessionPins
from ironcurtain.mcp_proxy.questions import Questions
from ironcurtain.mcp_proxy.server_calls import Remind
from ironcurtain.mcp_proxy.server_lists import ServerLists
from ironcurtain.mcp_proxy.settling import Settling

UPDATED = "notifications/resources/updated"

FORM_COMPLETE = "notifications/elicitation/complete"


class Outages:
    """
    Which servers are down, and why.

    :param report: called with a server's name and the reason; returns the reason in words that may be shown.
    :ivar failures: the reasons, by name; without servers that have not been started yet.
    """

    def __init__(self, report: Callable[[str, str], str]) -> None:
        self._report = report
        self._reported: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def add(self, server: str, why: str) -> None:
        """A server is down. A reason that is unchanged is not reported again."""
        if self._reported.get(server) != why:
            self._reported[server] = why
            self._shown[server] = self._report(server, why)
        self.failures[server] = self._shown[server]


class Backends:
    """
    :param backends: in the order of their configuration.
    :param questions: answers the servers' requests.
    :param pins: decides which tool definitions are in force.
    :param tell: called with a message for the user.
    :param faults: records what servers send that breaks the protocol.
    :param slow: called with since when servers start that take long, in seconds of the clock, whenever there are
        others.
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
        slow: Callable[[Mapping[str, float]], None],
        failed: Callable[[str, str], str],
    ) -> None:
        self._backends = {backend.name: backend for backend in backends}
        self._questions, self._faults = questions, faults
        self.agents, self._outages = ConnectedAgents(rewriter), Outages(failed)
        self._starts = Settling(self._backends, clock, slow)
        catalogue = Catalogue([backend.name for backend in backends], rewriter.text, pins.see)
        changed = self.agents.tell
        self.lists = ServerLists(catalogue, pins, faults, audit, clock, tell, lambda method: changed(method, None))
        self._stopping = False

    @property
    def catalogue(self) -> Catalogue:
        """The lists of all servers, merged."""
        return self.lists.catalogue

    @property
    def failures(self) -> dict[str, str]:
        """Why servers are down, by name; without servers that have not been started yet."""
        return self._outages.failures

    async def start(self) -> None:
        """Start all backends, without waiting for them."""
        self._starts.begin()
        for backend in self._backends.values():
            await backend.start(self)

    async def stop(self) -> None:
        """Stop all backends concurrently."""
        self._stopping = True
        self.lists.stop()
        self._starts.stop()
        stops = [Deferred.fromCoroutine(backend.stop()) for backend in self._backends.values()]
        for failed, reason in await DeferredList(stops, consumeErrors=True):
            if not failed:
                self.log.failure("an MCP server did not stop cleanly", reason)

    async def settled(self, seconds: float, servers: Iterable[str] | None = None) -> None:
        """See :meth:`~ironcurtain.mcp_proxy.settling.Settling.settled`."""
        await self._starts.settled(seconds, servers)

    def starting(self) -> dict[str, str]:
        """:returns: for each server that is still starting, why it is not ready, if it shows; see :attr:`failures`."""
        starting = {name: backend.oddity for name, backend in self._backends.items() if name in self._starts.unsettled}
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
        return not self._starts.unsettled

    def tools(self) -> list[ToolDefinition]:
        """:returns: the tools that can be called now."""
        return list(self.catalogue.offered.values())

    # Agents

    def join(self, agent: ConnectedAgent) -> None:
        """Add an agent, which sent its first request."""
        self.agents.add(agent)
        self._starts.agent_is(agent.capabilities)

    def without_agents(self) -> None:
        """No agent will connect, so no server waits for one."""
        self._starts.agent_is({})

    def leave(self, agent: ConnectedAgent) -> None:
        """Remove an agent, whose connection ended."""
        self.agents.remove(agent)
        for server, uri in agent.subscriptions.values():
            self.unsubscribe(server, uri)

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
        if (server, uri) in self.agents.subscriptions():
            return succeed(None)
        return self._quietly(server, "resources/unsubscribe", {"uri": uri})

    def set_level(self, backend: Backend) -> Deferred[None]:
        """Send a backend the minimum severity of log messages."""
        return self._quietly(backend.name, "logging/setLevel", {"level": self.agents.level})

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
        waits = self._questions.waits_for_agent(backend.name)
        return self._questions.capabilities(backend.name, await self._starts.agent_capabilities(backend.name, waits))

    async def came_up(self, backend: Backend) -> None:
        """A backend is up: fetch its lists, and restore the state of its previous run."""
        self.failures.pop(backend.name, None)
        for kind in KINDS:
            await self.lists.load(backend, kind)
        if self.agents.level is not None and backend in self.having("logging"):
            self.set_level(backend)
        for server, uri in self.agents.subscriptions():
            if server == backend.name:
                self._quietly(server, "resources/subscribe", {"uri": uri})
        changed = [kind.changed for kind in KINDS if backend in self.having(kind.capability)]
        if self.catalogue.tools_of(backend.name):  # which its capabilities need not name
            changed.insert(0, TOOLS.changed)
        for method in dict.fromkeys(changed):
            self.agents.tell(method, None)
        self._starts.settle(backend.name)

    def went_down(self, backend: Backend, why: str) -> None:
        """A backend is down. Its lists stay, since it will be restarted."""
        if not self._stopping:
            self._outages.add(backend.name, why)
        self._starts.settle(backend.name)

    def tell_failures(self, agent: ConnectedAgent) -> None:
        """Tell an agent which servers are down, and why."""
        self.agents.tell_failures(agent, self.failures)

    def notified(self, backend: Backend, method: str, params: bytes | None) -> None:
        """A backend sent a notification. Forward it to the agents; if a list changed, fetch the list first."""
        kinds = [kind for kind in KINDS if kind.changed == method]
        if kinds:
            self.lists.refresh(backend, kinds)
        elif method == FORM_COMPLETE:
            return  # agents never see what a server asks a person
        elif method == UPDATED:
            self.agents.tell_subscribers(backend.name, method, params)
        else:
            self.agents.tell(method, params)

    async def asked(self, backend: Backend, method: str, params: bytes | None) -> bytes:
        """A backend sent a request."""
        return await self._questions.answer(backend.name, method, params, self.agents.asked)

    def _quietly(self, server: str, method: str, params: Mapping[str, Any]) -> Deferred[None]:
        async def ask() -> None:
            try:
                await self.get(server).request(method, params)
            except IronCurtainError as e:
                self.log.info("MCP server {name} refused {method}: {error}", name=server, method=method, error=e)

        return Deferred.fromCoroutine(ask())
