"""
Answer what servers ask: they ask us, not the agent.

The agent must not answer for the workspace (it could widen what a file server may touch), and it has no person before
it. So roots are ours, questions to a person go to ours, and the agent's model is nobody's to use, unless the server's
configuration says that its requests may be passed on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from ironcurtain.audit import AuditLog
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.backend import RpcError
from ironcurtain.mcp_proxy.calls import PathRewriter
from ironcurtain.mcp_proxy.servers_config import AgentRequest

Elicit = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""
Puts a server's question before a person: takes the server's name and the request's parameters, and gives the result
(``action`` and, with ``accept``, ``content``).
"""

ROUTES: Mapping[str, AgentRequest] = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation"}


class AgentLink(Protocol):
    """The agent's connection, as far as it can be asked."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the agent says that it can do."""

    def ask(self, method: str, params: bytes | None) -> Deferred[bytes]:
        """:returns: the raw JSON result; fails with :class:`RpcError`. Cancelling it takes the question back."""


AgentFor = Callable[[str, AgentRequest], AgentLink | None]


class Questions:
    """
    :param root: URI of the workspace as servers know it.
    :param allowed: for each server, which of its requests are passed on to the agent.
    :param elicit: asks a person; without, such questions are declined.
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
        :returns: what to claim to a server: never more than will be answered. Roots are answered, but not claimed: a
            server that hears of them puts them in place of the directories that it was configured with.
        """
        allowed = self._allowed.get(server, frozenset())
        claimed: dict[str, Any] = {name: agent[name] for name in allowed if isinstance(agent.get(name), dict)}
        if self._elicit is not None:
            claimed.setdefault("elicitation", {})
        return claimed

    def waits_for_agent(self, server: str) -> bool:
        """Whether a server's handshake depends on what the agent can do."""
        return bool(self._allowed.get(server))

    async def answer(self, server: str, method: str, params: bytes | None, agent_for: AgentFor) -> bytes:
        """
        :param agent_for: finds the agent that the question is for.
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
    # A progress token is unique to its server only; two servers may both use 1 towards the same agent.
    value = codec.decode(params)
    if isinstance(value, dict) and isinstance(value.get("_meta"), dict):
        value["_meta"].pop("progressToken", None)
    return codec.encode(value)


def _refused(code: int, message: str) -> RpcError:
    return RpcError(codec.encode({"code": code, "message": message}))
