"""
The gate, the policy enforcement point: judge and record every call of every agent before making it.

The router calls it for MCP agents, code mode for the built-in agent. Forwarded calls are re-encoded from the values
that the policy judged. Results are passed on unchanged.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import AuditUnavailable
from ironcurtain.escalation import arguments_digest
from ironcurtain.home.sections import REPEATED_CALLS
from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.backend import BackendFailed, OnProgress, RpcError
from ironcurtain.mcp_proxy.backends import Backends
from ironcurtain.mcp_proxy.calls import ERROR_TEXT, CallResult, PathRewriter, clean, failure_text, refusal
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.circuit_breaker import WINDOW, CircuitBreaker
from ironcurtain.mcp_proxy.hooked_calls import HookedCalls
from ironcurtain.mcp_proxy.hooks import Hooks
from ironcurtain.mcp_proxy.memory import CallMemory, FileChanges, file_changes
from ironcurtain.mcp_proxy.pins import WITHHELD, Reason
from ironcurtain.mcp_proxy.refusals import BREAKER_RULE, WITHHELD_CODE, CallRefused, refuse_denied
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.verdict import Decision, ToolCall, Verdict

REFUSED = -32001
"""JSON-RPC error code of refused requests other than tool calls (in the range reserved for servers)."""

STOPPED_RULE = "protected-path-appeared"
"""The rule that denies all calls once a session must not go on."""

GIT_DIRECTORY = {"git_set_working_dir": ("path",), "git_clone": ("localPath", "targetPath", "path")}
"""
Tools that set a server's working directory: after one succeeds, calls of that server without a path use this argument.
"""

Progress = Callable[[str], None]
"""Called with a message for the caller whenever a call still waits."""

__all__ = ["CallResult", "Gate", "GateLimits", "ToolDefinition"]


class GateLimits(msgspec.Struct, frozen=True):
    """
    :param repeats: how often one client may make the same call within ``window`` seconds.
    :param result_bytes: maximum size in bytes of a result.
    :param durable: whether every call waits until its record is on disk, not only calls that a person approved.
    """

    repeats: int = REPEATED_CALLS
    window: float = WINDOW
    result_bytes: int = OUTBOUND_LIMIT
    durable: bool = False


class JudgedCall(msgspec.Struct, frozen=True):
    """
    A call as policy and hooks judge it.

    :param arguments: as the agent, or a hook, wrote them.
    :param definition: of the tool; ``None`` if there is none.
    """

    verdict: Verdict
    arguments: dict[str, Any]
    definition: ToolDefinition | None
    changes: FileChanges


class Gate:
    """
    The policy enforcement point of one session.

    :param memory: what happened in the session.
    :param hooks: the user's own programs that are asked about calls.
    :param stopped: returns why no call may be made and no result passed on any more; empty if they may.
    """

    log = Logger()

    def __init__(
        self,
        *,
        engine: PolicyEngine,
        admission: CallAdmission,
        backends: Backends,
        rewriter: PathRewriter,
        clock: IReactorTime,
        limits: GateLimits,
        memory: CallMemory,
        session_id: str = "",
        stopped: Callable[[], str] = lambda: "",
        hooks: Hooks | None = None,
    ) -> None:
        self._engine, self.admission, self._backends, self._rewriter = engine, admission, backends, rewriter
        self._memory = memory
        self._clock, self._limits, self._stopped = clock, limits, stopped
        self._breakers: WeakKeyDictionary[object, CircuitBreaker] = WeakKeyDictionary()
        self._git_directories: dict[str, str] = {}
        current = backends.catalogue.tool
        self._hooks = None if hooks is None else HookedCalls(hooks, clock, session_id, self._evaluate, current)

    def tools(self) -> list[ToolDefinition]:
        """:returns: the tools that can be called now."""
        return self._backends.tools()

    async def settled(self, seconds: float) -> None:
        """Wait until every server is up or has failed to start, but not longer than ``seconds``."""
        await self._backends.settled(seconds)

    def withheld(self) -> list[ToolDefinition]:
        """:returns: the tools that wait until a person accepts their definitions."""
        return [tool for tool in self._backends.catalogue.tools.values() if tool.withheld is not None]

    def starting(self) -> list[str]:
        """:returns: the servers that are neither up nor have failed yet."""
        return list(self._backends.starting())

    async def call(
        self,
        server: str,
        tool: str,
        arguments: dict[str, Any],
        *,
        extra: Mapping[str, Any] = {},
        progress: Progress | None = None,
        on_progress: OnProgress | None = None,
        client: object | None = None,
    ) -> CallResult:
        """
        Make a call if the policy, and a person if required, allow it. Cancelling withdraws it.

        :param tool: the server's name of the tool.
        :param arguments: JSON values, with the agent's names for paths.
        :param extra: other parameters of the request, which are forwarded.
        :param progress: called every few seconds while a person decides.
        :param on_progress: called with the server's progress reports.
        :param client: the caller, if there are several; repetitions are counted per client.
        :returns: the result; a refusal is a result, too.
        """
        call = self.admission.open(server, tool)
        try:
            judged = await self.judge(call, arguments, client)
            verdict = judged.verdict
            sequence = self.admission.record(call, verdict, judged.changes.creates)
            refuse_denied(verdict)
            if verdict.decision is Decision.ESCALATE:
                await self.admission.ask(call, verdict, progress, judged.definition)
            elif self._limits.durable:
                await self.admission.durable(sequence)
        except Exception as e:
            return self._failed(call, e)
        return await self.make(call, judged, extra=extra, progress=progress, on_progress=on_progress)

    def preview(self, server: str, tool: str, arguments: dict[str, Any]) -> Verdict:
        """:returns: what the policy says of a call now, hooks left out. It does not count as one."""
        return self._preview(server, tool, arguments, self._backends.catalogue.tool(server, tool))

    async def judge(self, call: OpenCall, arguments: dict[str, Any], client: object | None = None) -> JudgedCall:
        """
        Judge a call whose turn has come, by the policy and the hooks. Nothing is recorded.

        :param call: it, or one of the same tool.
        """
        self._backends.lists.look_again()
        definition = self._backends.catalogue.tool(call.server, call.tool)
        verdict = self._judge(call, arguments, definition, self if client is None else client)
        if definition is not None and self._hooks is not None:
            verdict, arguments = await self._hooks.before(call, verdict, arguments, definition)
        return JudgedCall(verdict, arguments, definition, file_changes(verdict))

    async def make(
        self,
        call: OpenCall,
        judged: JudgedCall,
        *,
        extra: Mapping[str, Any] = {},
        progress: Progress | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallResult:
        """
        Make a call that was recorded, and approved if it is escalated, unless what it means has changed since.

        :returns: the result, as for :meth:`call`.
        """
        server, tool, verdict = call.server, call.tool, judged.verdict
        try:
            if verdict.decision is Decision.ESCALATE:
                self._unchanged(verdict, self._evaluate(server, tool, judged.arguments, judged.definition))
                self._still(judged.definition)
            if verdict.decision is Decision.ESCALATE or self._hooks is not None:
                self._still_open(made=False)
            self._memory.made(server, tool)
            params = {**clean(extra), "name": tool, "arguments": verdict.arguments}
            sent = await self._backends.request(server, "tools/call", params, progress, on_progress)
            raw = self._backends.sound(server, "tools/call", tool, sent, params)
            if self._hooks is not None:
                await self._hooks.after(call, verdict, failure_text(raw) is None)
            self._still_open()
            return self._finished(call, raw, verdict, judged.changes)
        except Exception as e:
            return self._failed(call, e)

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        on_progress: OnProgress | None = None,
    ) -> tuple[bytes, dict[str, Any]]:
        """
        Make a request other than a tool call: read a resource, get a prompt, complete an argument.

        :param params: with the agent's URI, or the server's name of a prompt.
        :returns: the raw JSON result, and the parameters as sent to the server.
        :raises RpcError: it was refused, or the server answered with an error.
        """
        call = self.admission.open(server, method)
        passed = clean(params)
        subject = {name: params[name] for name in params if name in passed or name in ("name", "arguments")}
        subject.pop("_meta", None)
        try:
            verdict = self._judge_request(server, method, subject)
            sequence = self.admission.record(call, verdict)
            refuse_denied(verdict)
            if verdict.decision is Decision.ESCALATE:
                await self.admission.ask(call, verdict, progress)
                self._unchanged(verdict, self._judge_request(server, method, subject))
                self._still_open(made=False)
            self._memory.made(server, method)
            if verdict.decision is Decision.ALLOW and self._limits.durable:
                await self.admission.durable(sequence)
            sent = {**passed, **verdict.arguments}
            result = await self._backends.request(server, method, sent, progress, on_progress)
            raw = self._backends.sound(server, method, str(sent.get("name", sent.get("uri", ""))), result, sent)
            self._still_open()
            mapped = self._mapped(raw)
            self.admission.close(call, "success", raw)
        except Exception as e:
            raise _as_error(self._failed(call, e)) from None
        if mapped is None:
            raise _as_error(self._too_large(raw))
        return mapped, sent

    def _judge(self, call: OpenCall, arguments: dict[str, Any], tool: ToolDefinition | None, client: object) -> Verdict:
        if why := self._stopped():
            return Verdict(Decision.DENY, STOPPED_RULE, why, arguments)
        try:
            digest = arguments_digest(call.server, call.tool, arguments)
        except (TypeError, ValueError, RecursionError, OverflowError):
            return Verdict(Decision.DENY, "invalid-arguments", "the arguments are not JSON values", {})
        verdict = self._preview(call.server, call.tool, arguments, tool)
        if verdict.decision is Decision.DENY:
            return verdict
        repeats, window = self._limits.repeats, self._limits.window
        if self._breakers.setdefault(client, CircuitBreaker(repeats, window)).trips(digest, self._clock.seconds()):
            repeated = f"this client made the same call more than {repeats} times within {window:.0f} s"
            return replace(verdict, decision=Decision.DENY, rule=BREAKER_RULE, reason=repeated)
        return verdict

    def _preview(self, server: str, name: str, arguments: dict[str, Any], tool: ToolDefinition | None) -> Verdict:
        try:
            verdict = self._evaluate(server, name, arguments, tool)
        except Exception:
            return self._unjudged(server, name, arguments)
        if verdict.decision is Decision.DENY:
            return verdict
        if tool is None:
            return replace(verdict, decision=Decision.DENY, rule="unknown-tool", reason="there is no such tool")
        return verdict if tool.withheld is None else _withheld(verdict, tool, tool.withheld)

    def _evaluate(self, server: str, tool: str, arguments: dict[str, Any], known: ToolDefinition | None) -> Verdict:
        return self._engine.evaluate(
            ToolCall(server, tool, arguments),
            None if known is None else known.schema,
            git_directory=self._git_directories.get(server),
            history=self._memory.now(),
        )

    def _unchanged(self, shown: Verdict, now: Verdict) -> None:
        # Links and repository settings can change while a person decides.
        same = (now.arguments, now.resources) == (shown.arguments, shown.resources)
        if not same or now.decision is Decision.DENY:
            text = (
                "ESCALATION DENIED: what this call would use, or what the policy says about it, changed while a person "
                "decided; nothing was done"
            )
            raise CallRefused("denied", "changed-meanwhile", f"{text}: call again", shown.rule)

    def _judge_request(self, server: str, method: str, params: dict[str, Any]) -> Verdict:
        if why := self._stopped():
            return Verdict(Decision.DENY, STOPPED_RULE, why, params)
        if method not in ("resources/read", "resources/subscribe"):
            return Verdict(Decision.ALLOW, "configured-server", f"{server} is configured for this session", params)
        try:
            verdict = self._engine.evaluate_resource(server, params["uri"], history=self._memory.now())
        except Exception:
            return self._unjudged(server, method, params)
        return replace(verdict, arguments={**params, **verdict.arguments})

    def _unjudged(self, server: str, tool: str, arguments: dict[str, Any]) -> Verdict:
        self.log.failure("the policy could not judge a call to {server} {tool}", server=server, tool=tool)
        return Verdict(Decision.DENY, "invalid-arguments", "the policy cannot judge these arguments", arguments)

    def _still_open(self, made: bool = True) -> None:
        if why := self._stopped():
            status, what = ("failed", "RESULT WITHHELD") if made else ("denied", "NOTHING WAS DONE")
            raise CallRefused(status, STOPPED_RULE, f"{what}: {why}", STOPPED_RULE)

    def _still(self, tool: ToolDefinition | None) -> None:
        now = None if tool is None else self._backends.catalogue.tool(tool.server, tool.name)
        if tool is None or now is None or now.digest != tool.digest or now.withheld is not None:
            text = "TOOL WITHHELD: the tool's definition changed while a person decided; nothing was done"
            raise CallRefused("denied", WITHHELD_CODE, text, "changed-definition")

    def _finished(self, call: OpenCall, raw: bytes, verdict: Verdict, changes: FileChanges) -> CallResult:
        error, mapped = failure_text(raw), self._mapped(raw)
        self.admission.close(call, "success" if error is None else "error", raw, error or "")
        if error is None:
            self._memory.succeeded(changes)
            if names := GIT_DIRECTORY.get(call.tool):
                self._remember_git(call.server, verdict.arguments, names)
        return self._too_large(raw) if mapped is None else CallResult(mapped, error is not None)

    def _remember_git(self, server: str, arguments: Mapping[str, Any], names: tuple[str, ...]) -> None:
        directory = next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)
        if directory is not None:
            self._git_directories[server] = directory

    def _mapped(self, raw: bytes) -> bytes | None:
        return self._rewriter.raw(raw) if len(raw) <= self._limits.result_bytes else None

    def _too_large(self, raw: bytes) -> CallResult:
        text = f"RESULT TOO LARGE: the call was made, but of its {len(raw)} bytes at most {self._limits.result_bytes}"
        return refusal(f"{text} would be passed on: ask for less", "result-too-large")

    def _failed(self, call: OpenCall, error: Exception) -> CallResult:
        """
        Record a call that failed.

        :returns: the text for its caller.
        :raises CancelledError: there is no caller left.
        """
        if isinstance(error, AuditUnavailable):
            return refusal(f"AUDIT UNAVAILABLE: {error}; no further calls are made", "audit-unavailable")
        if isinstance(error, CancelledError):
            self.admission.close(call, "cancelled")
            raise error
        if isinstance(error, CallRefused):
            self.admission.close(call, error.status, error=error.why)
            return refusal(self._rewriter.text(str(error)), error.why, error.rule)
        self.admission.close(call, "failed" if not isinstance(error, RpcError) else "error", error=_words(error))
        if isinstance(error, RpcError):
            result = refusal(self._rewriter.text(_words(error)), "backend-error")
            return replace(result, error=self._rewriter.raw(error.raw))
        if isinstance(error, (BackendFailed, codec.InvalidMessage)):
            return refusal(f"FAILED: {self._rewriter.text(_words(error))}", "backend-failed")
        self.log.failure("a call to {server} {tool} failed", server=call.server, tool=call.tool)
        why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""  # without the file's name
        return refusal(f"FAILED: an internal error of IronCurtain{why}; see its log", "backend-failed")


def _withheld(verdict: Verdict, tool: ToolDefinition, why: Reason) -> Verdict:
    command = f"ironcurtain tools show {tool.server} {shlex.quote(tool.name)}"
    reason = f"{WITHHELD[why]}. A person can view and accept it with: {command}"
    return replace(verdict, decision=Decision.DENY, rule=why, reason=reason)


def _words(error: Exception) -> str:
    if not isinstance(error, RpcError):
        return str(error)[:ERROR_TEXT]
    body = codec.decode(error.raw)
    message = body.get("message") if isinstance(body, dict) else None
    return message[:ERROR_TEXT] if isinstance(message, str) else "the server answered with an error"


def _as_error(result: CallResult) -> RpcError:
    if result.error is not None:
        return RpcError(result.error)
    body = codec.decode(result.raw)
    return RpcError(codec.encode({"code": REFUSED, "message": body["content"][0]["text"], "data": body["_meta"]}))
