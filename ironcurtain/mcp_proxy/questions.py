"""
Answer the requests of servers: IronCurtain answers them, not the agent.

The agent must not answer for the workspace (it could extend what a file server may access), and no person watches it.
So IronCurtain answers requests for roots, asks its user the questions for a person, and refuses to use the agent's
model, unless the server's configuration permits it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from ironcurtain.audit import AuditLog
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.backend import RpcError
from ironcurtain.mcp_proxy.calls import PathRewriter
from ironcurtain.mcp_proxy.server_fields import AgentRequest

Elicit = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""
Shows a server's question to a person: takes the server's name and the request's parameters, and returns the result
(``action`` and, with ``accept``, ``content``).
"""

ROUTES: Mapping[str, AgentRequest] = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation"}


class AgentLink(Protocol):
    """The agent's connection, for requests to the agent."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The agent's capabilities."""

    def ask(self, method: str, params: bytes | None) -> Deferred[bytes]:
        """:returns: the raw JSON result; fails with :class:`RpcError`. Cancelling it sends the agent a cancellation."""


AgentFor = Callable[[str, AgentRequest], AgentLink | None]


class Questions:
    """
    :param root: URI of the workspace for servers.
    :param allowed: for each server, the requests that are forwarded to the agent.
    :param elicit: asks a person; without it, such requests are declined.
    """

    def __init__(
        self,
        *,
        root: str,
        allowed: Mapping[str, frozenset[AgentRequest]],
        elicit: Elicit | None,
        audit: AuditLog,
        rewriter: PathRewriter,
    ) -> None:
        self._root, self._allowed, self._elicit = root, allowed, elicit
        self._audit, self._rewriter = audit, rewriter

    def capabilities(self, server: str, agent: Mapping[str, Any]) -> dict[str, Any]:
        """
        :param agent: the agent's capabilities.
        :returns: the capabilities to announce to a server: only those that will be answered. Roots are answered but not
            announced, since a server that knows of them uses them instead of its configured directories.
        """
        allowed = self._allowed.get(server, frozenset())
        claimed: dict[str, Any] = {name: agent[name] for name in allowed if isinstance(agent.get(name), dict)}
        if self._elicit is not None:
            claimed.setdefault("elicitation", {})
        return claimed

    def waits_for_agent(self, server: str) -> bool:
        """Whether a server's handshake depends on the agent's capabilities."""
        return bool(self._allowed.get(server))

    async def answer(self, server: str, method: str, params: bytes | None, agent_for: AgentFor) -> bytes:
        """
        :param agent_for: returns the agent that the request is for.
        :returns: the raw JSON result.
        :raises RpcError: the request is refused.
        """
        if method == "ping":
            return b"{}"
        if method == "roots/list":
            return codec.encode({"roots": [{"uri": self._root, "name": "workspace"}]})
        if (kind := ROUTES.get(method)) is None:
            raise _refused(codec.METHOD_NOT_FOUND, "unknown method")
        agent = agent_for(server, kind) if kind in self._allowed.get(server, ()) else None
        if agent is not None:
            self._audit.append("question", server=server, method=method, answeredBy="agent")
            answer = await agent.ask(method, None if params is None else self._rewriter.raw(_without_token(params)))
            return codec.encode(codec.decode(answer))
        if kind == "elicitation":
            return await self._ask_person(server, params)
        self._audit.append("question", server=server, method=method, answeredBy="nobody")
        raise _refused(codec.METHOD_NOT_FOUND, "sampling is not allowed here")

    async def _ask_person(self, server: str, params: bytes | None) -> bytes:
        question = codec.decode(params or b"{}")
        if self._elicit is None or not isinstance(question, dict):
            answer: Mapping[str, Any] = {"action": "decline"}
            by = "nobody"
        else:
            answer, by = await self._elicit(server, question), "person"
        action = str(answer.get("action"))
        self._audit.append("question", server=server, method="elicitation/create", answeredBy=by, action=action)
        return codec.encode(answer)


def _without_token(params: bytes) -> bytes:
    # Progress tokens are unique per server; two servers may both use 1 with the same agent.
    value = codec.decode(params)
    if isinstance(value, dict) and isinstance(value.get("_meta"), dict):
        value["_meta"].pop("progressToken", None)
    return codec.encode(value)


def _refused(code: int, message: str) -> RpcError:
    return RpcError(codec.encode({"code": code, "message": message}))
