"""
Answer the requests of servers: IronCurtain answers them, or asks a person.

The agent must not answer for the workspace (it could extend what a file server may access), nor for a person. So
requests for roots are answered here, and forms wait for a person like calls of the agent. A server's use of the agent's
model has to be permitted by its configuration, and each request waits for a person as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from ironcurtain.escalation.form_reading import RefusedForm, read_form
from ironcurtain.escalation.forms import Form
from ironcurtain.escalation.permission import Scope
from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.backend import RpcError
from ironcurtain.mcp_proxy.calls import PathRewriter
from ironcurtain.mcp_proxy.refusals import CallRefused
from ironcurtain.mcp_proxy.server_calls import Remind, ServerCalls
from ironcurtain.mcp_proxy.server_fields import AgentRequest
from ironcurtain.network.refusal_records import Meter
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.text.display import one_line

ELICITATION, SAMPLING = "elicitation/create", "sampling/createMessage"

ADDRESSES_REQUIRED = -32042
"""JSON-RPC error code of a server that wants a person to open addresses first (revision 2025-11-25, elicitation)."""

OPEN = 4
"""Maximum number of questions of one server that wait at the same time: they must not take the place of calls."""

MINUTE, A_MINUTE = 60.0, 12
"""Seconds, and maximum number of questions of one server in them."""

NAME_LIMIT = 100
"""Maximum number of characters of a model's name."""

ASKED_RULE, FLOOD_RULE, STOPPED_RULE = "server-question", "too-many-questions", "session-stopped"
REFUSED_FORM_RULE, SECRET_RULE, NO_SAMPLING_RULE = "refused-form", "form-asks-for-secret", "sampling-not-allowed"
"""The rules by which questions are asked or refused; stable, they stand in the audit log."""


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
    :param allowed: for each server, the requests that may be forwarded to the agent.
    :param tell: called with a message for the user.
    :param policy_version: returns the version of the policy in force.
    :param stopped: returns why nothing may be passed on any more; empty if it may.
    """

    def __init__(
        self,
        *,
        root: str,
        allowed: Mapping[str, frozenset[AgentRequest]],
        admission: CallAdmission,
        rewriter: PathRewriter,
        clock: IReactorTime,
        tell: Callable[[str], None],
        policy_version: Callable[[], str],
        stopped: Callable[[], str] = lambda: "",
    ) -> None:
        self._root, self._allowed, self._admission, self._rewriter = root, allowed, admission, rewriter
        self._clock, self._tell, self._policy_version, self._stopped = clock, tell, policy_version, stopped
        self._meters: dict[str, Meter] = {}
        self.calls = ServerCalls()
        """The calls during which servers ask."""

    def capabilities(self, server: str, agent: Mapping[str, Any]) -> dict[str, Any]:
        """
        :param agent: the agent's capabilities.
        :returns: the capabilities to announce to a server: only those that will be answered. Roots are answered but not
            announced, since a server that knows of them uses them instead of its configured directories.
        """
        allowed = self._allowed.get(server, frozenset())
        claimed: dict[str, Any] = {name: agent[name] for name in allowed if isinstance(agent.get(name), dict)}
        return {**claimed, "elicitation": {"form": {}, "url": {}}}

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
        if method not in (ELICITATION, SAMPLING):
            raise _refused(codec.METHOD_NOT_FOUND, "unknown method")
        asked = codec.decode(params or b"{}")
        if not isinstance(asked, dict):
            raise _refused(codec.INVALID_PARAMS, "params must be an object")
        call = self._admission.open(server, method, kind="question")
        shown = {name: value for name, value in asked.items() if name != "_meta"}
        if method == ELICITATION:
            work = self._fill_in(call, shown)
        else:
            work = self._sample(call, asked, shown, agent_for(server, "sampling"))
        return await self.calls.asked(server, Deferred.fromCoroutine(work))

    async def during(self, server: str, send: Callable[[], Awaitable[bytes]], remind: Remind | None) -> bytes:
        """
        Send an agent's request, during which the server may ask; again once a person has opened an address for it.

        :param send: sends it, and returns the raw result.
        :param remind: called while it waits for a person.
        """
        with self.calls.during(server, remind):
            try:
                return await send()
            except RpcError as e:
                if not await self._opened(server, e):
                    raise
            return await send()

    async def _opened(self, server: str, error: RpcError) -> bool:
        """
        :param error: a server's answer to a request.
        :returns: whether a person opened every address that it names as the condition of another answer.
        :raises RpcError: it names some, and a person did not open all of them. The agent does not get them.
        """
        value = codec.decode(error.raw)
        data = value.get("data") if isinstance(value, dict) and value.get("code") == ADDRESSES_REQUIRED else None
        needed = data.get("elicitations") if isinstance(data, dict) else None
        if not isinstance(needed, list) or not needed:
            return False
        for each in needed[:OPEN]:
            asked = codec.encode({**each, "mode": "url"} if isinstance(each, dict) else {})
            answer = codec.decode(await self.answer(server, ELICITATION, asked, lambda server, kind: None))
            if answer["action"] != "accept":
                raise _refused(ADDRESSES_REQUIRED, "the server wants a person to open an address, who did not")
        return True

    async def _fill_in(self, call: OpenCall, shown: dict[str, Any]) -> bytes:
        """:returns: what a person filled in, or that nobody did."""
        self._admit(call, shown)
        try:
            form = read_form(shown)
        except RefusedForm as e:
            rule = SECRET_RULE if e.secret else REFUSED_FORM_RULE
            self._tell(f"a form of MCP server {call.server} was refused: {e}")
            raise self._deny(call, shown, rule, f"the form is not shown to anybody: {e}") from None
        reason = f"the MCP server {call.server} asks you; the agent gets to know what the server makes of it"
        try:
            content = await self._ask(call, shown, reason, form=form)
        except CallRefused as e:
            self._admission.close(call, e.status, error=e.why)
            return codec.encode({"action": "decline" if e.why in ("denied-by-person", "nobody-to-ask") else "cancel"})
        if self._stopped():  # while the person filled it in
            self._admission.close(call, "cancelled", error=STOPPED_RULE)
            return codec.encode({"action": "cancel"})
        answer = codec.encode({"action": "accept"} if form.url else {"action": "accept", "content": content or {}})
        self._admission.close(call, "success", answer)
        return answer

    async def _sample(
        self, call: OpenCall, asked: dict[str, Any], shown: dict[str, Any], agent: AgentLink | None
    ) -> bytes:
        """:returns: what the agent's model answered, if a person permits it."""
        if agent is None or "sampling" not in self._allowed.get(call.server, ()):
            raise self._deny(call, shown, NO_SAMPLING_RULE, "sampling is not allowed here", codec.METHOD_NOT_FOUND)
        self._admit(call, shown)
        reason = f"the MCP server {call.server} wants the agent's model to answer these messages; {_models(shown)}"
        words = f"every request of the MCP server {call.server} to the agent's model, whatever its messages"
        rules, version = frozenset((ASKED_RULE,)), self._policy_version()
        scope = Scope(call.server, call.tool, "", rules, version, (), (), (), words)
        try:
            await self._ask(call, shown, reason, scope=scope)
        except CallRefused as e:
            self._admission.close(call, e.status, error=e.why)
            raise _refused(codec.INVALID_REQUEST, f"the request was refused: {e.why}") from None
        self._require_running(call)
        try:
            raw = await agent.ask(SAMPLING, self._rewriter.raw(codec.encode(_without_token(asked))))
            answer = codec.encode(codec.decode(raw))
        except Exception as e:
            self._admission.close(call, "cancelled" if isinstance(e, CancelledError) else "error")
            raise
        self._require_running(call)
        self._admission.close(call, "success", answer)
        return answer

    def _require_running(self, call: OpenCall) -> None:
        """:raises RpcError: the session must not go on, so nothing more is passed on."""
        if why := self._stopped():
            self._admission.close(call, "cancelled", error=STOPPED_RULE)
            raise _refused(codec.INVALID_REQUEST, why)

    def _admit(self, call: OpenCall, shown: dict[str, Any]) -> None:
        """:raises RpcError: the session must not go on, or the server asks too much."""
        if why := self._stopped():
            raise self._deny(call, shown, STOPPED_RULE, why)
        meter = self._meters.setdefault(call.server, Meter(A_MINUTE, MINUTE))
        if self.calls.asking(call.server) >= OPEN or not meter.take(self._clock.seconds()):
            why = f"a server may ask {A_MINUTE} questions a minute, of which {OPEN} may wait"
            raise self._deny(call, shown, FLOOD_RULE, why, codec.INVALID_REQUEST)

    async def _ask(
        self, call: OpenCall, shown: dict[str, Any], reason: str, form: Form | None = None, scope: Scope | None = None
    ) -> Mapping[str, Any] | None:
        verdict = Verdict(Decision.ESCALATE, ASKED_RULE, reason, shown)
        self._admission.record(call, verdict)
        progress = partial(self.calls.remind, call.server)
        return (await self._admission.ask(call, verdict, progress, form=form, scope=scope)).content

    def _deny(
        self, call: OpenCall, shown: dict[str, Any], rule: str, why: str, code: int = codec.INVALID_PARAMS
    ) -> RpcError:
        """:returns: the error for a question that nobody is asked, which is recorded."""
        self._admission.record(call, Verdict(Decision.DENY, rule, why, shown))
        self._admission.close(call, "denied", error="denied-by-rule")
        return _refused(code, why)


def _models(shown: Mapping[str, Any]) -> str:
    """:returns: which model a server wants, in words."""
    wishes = shown.get("modelPreferences")
    hints = wishes.get("hints") if isinstance(wishes, dict) else None
    names = [each.get("name") for each in hints if isinstance(each, dict)] if isinstance(hints, list) else []
    texts = [one_line(name, NAME_LIMIT) for name in names[:4] if isinstance(name, str)]
    return f"it would like {' or '.join(texts)}, and the agent chooses" if texts else "the agent chooses the model"


def _without_token(asked: dict[str, Any]) -> dict[str, Any]:
    # Progress tokens are unique per server; two servers may both use 1 with the same agent.
    if isinstance(meta := asked.get("_meta"), dict):
        return {**asked, "_meta": {name: value for name, value in meta.items() if name != "progressToken"}}
    return asked


def _refused(code: int, message: str) -> RpcError:
    return RpcError(codec.encode({"code": code, "message": message}))
