"""The agents that are connected to a session's MCP proxy, and what they are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.calls import PathRewriter
from ironcurtain.mcp_proxy.questions import AgentLink
from ironcurtain.mcp_proxy.server_fields import AgentRequest

ABOVE_ERROR = ("critical", "alert", "emergency")
"""Levels of log messages that are more severe than ``error`` (RFC 5424)."""


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


class ConnectedAgents:
    """
    :param rewriter: maps paths in what agents are told.
    :ivar level: the lowest severity of log messages that an agent asked for.
    """

    def __init__(self, rewriter: PathRewriter) -> None:
        self._rewriter = rewriter
        self._agents: list[ConnectedAgent] = []
        self._callers: dict[str, ConnectedAgent] = {}
        self.level: str | None = None

    def __contains__(self, agent: object) -> bool:
        return agent in self._agents

    def add(self, agent: ConnectedAgent) -> None:
        """Add an agent; no effect if it is known."""
        if agent not in self._agents:
            self._agents.append(agent)

    def remove(self, agent: ConnectedAgent) -> None:
        """Remove an agent, whose connection ended."""
        if agent in self._agents:
            self._agents.remove(agent)
        self._callers = {server: caller for server, caller in self._callers.items() if caller is not agent}

    def calling(self, server: str, agent: ConnectedAgent) -> None:
        """Note which agent is about to call a server: the server's next requests are for this agent."""
        self._callers[server] = agent

    def asked(self, server: str, kind: AgentRequest) -> AgentLink | None:
        """:returns: the agent that a server's request is for: of those that can answer it, the one that called it."""
        caller = self._callers.get(server)
        ordered = [caller, *self._agents] if caller is not None else self._agents
        return next((agent for agent in ordered if isinstance(agent.capabilities.get(kind), dict)), None)

    def subscriptions(self) -> set[tuple[str, str]]:
        """:returns: the resources that any of them subscribed to: server, and the server's URI."""
        return {subscribed for agent in self._agents for subscribed in agent.subscriptions.values()}

    def tell(self, method: str, params: bytes | None) -> None:
        """Send all of them a notification."""
        self._tell(self._agents, method, params)

    def tell_subscribers(self, server: str, method: str, params: bytes | None) -> None:
        """Send a notification to those that are subscribed to any resource of a server."""
        hearing = [agent for agent in self._agents if server in (name for name, _ in agent.subscriptions.values())]
        self._tell(hearing, method, params)

    def tell_failures(self, agent: ConnectedAgent, failures: Mapping[str, str]) -> None:
        """Send an agent log messages that say which servers are down, and why."""
        if self.level in ABOVE_ERROR:
            return
        for server, why in failures.items():
            text = f"The MCP server {server} {why}. Its tools cannot be called until it is up."
            said = codec.encode({"level": "error", "logger": "ironcurtain", "data": text})
            agent.tell("notifications/message", self._rewriter.raw(said))

    def _tell(self, agents: Iterable[ConnectedAgent], method: str, params: bytes | None) -> None:
        mapped = None if params is None else self._rewriter.raw(params)
        for agent in list(agents):
            agent.tell(method, mapped)
