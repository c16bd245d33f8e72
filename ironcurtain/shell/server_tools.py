"""Steps that call tools of the user's MCP servers, through the gate of the MCP proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.interfaces import IReactorTime

from ironcurtain.command_rules import Risk
from ironcurtain.errors import IronCurtainError, UsageError
from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.session.parts import Core
from ironcurtain.session.tools import has_servers, make_proxy
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.messages import Message, Notice, ProposedStep, StepKind, StepOutcome
from ironcurtain.shell.tools import JudgedStep, StepRun

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.gate import Gate, JudgedCall
    from ironcurtain.mcp_proxy.proxy import McpProxy

SERVERS_SECONDS: Final = 10.0
"""How long the first instruction waits for the servers."""

PARENT_RULE: Final = "structural-agent"
"""The rule that asks about tools where an agent above has a policy of its own, which has no rules for them."""


class ServerTools:
    """
    The tools of a shell's session: the MCP proxy, which is made at the first instruction, so that shells start fast.

    :param make: makes the proxy; ``None``: the user has configured no servers for it.
    """

    def __init__(self, make: Callable[[], McpProxy | None]) -> None:
        self._make, self._tried = make, False
        self._proxy: McpProxy | None = None

    @classmethod
    def of(cls, core: Core, reactor: Any, environ: Mapping[str, str]) -> ServerTools:
        """:returns: those of one session. Files are not among them: the shell's agent has its own steps for them."""

        def make() -> McpProxy | None:
            return make_proxy(core, reactor, environ, files_too=False) if has_servers(core, environ) else None

        return cls(make)

    @property
    def gate(self) -> Gate | None:
        """Where calls are judged and made; ``None``: there are no servers, or not yet."""
        return None if self._proxy is None else self._proxy.gate

    @property
    def unsandboxed(self) -> tuple[str, ...]:
        """Names of the servers outside any sandbox."""
        return () if self._proxy is None else self._proxy.unsandboxed

    @property
    def sandbox(self) -> str:
        """The kind of the servers' sandboxes."""
        return "" if self._proxy is None else self._proxy.sandbox

    @property
    def failures(self) -> dict[str, str]:
        """Why servers are down, by name."""
        return {} if self._proxy is None else self._proxy.failures

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        """What servers sent that breaks the protocol, by name."""
        return {} if self._proxy is None else self._proxy.faults

    async def start(self) -> None:
        """Nothing is started before it is needed."""

    async def ready(self, tell: Callable[[Message], None]) -> None:
        """
        Start the servers, once, and wait until they are up; if it fails, there are none, which is told.

        :param tell: gets messages for front ends.
        """
        if self._tried:
            return
        self._tried = True
        try:
            if (proxy := self._make()) is not None:
                await proxy.start()
                proxy.without_agents()
                self._proxy = proxy
                late = await proxy.ready(SERVERS_SECONDS, False, lambda names: None)
                for server, why in {**late, **proxy.failures}.items():
                    tell(Notice(text=f"MCP server {server} is not there: {why}"))
        except IronCurtainError as e:
            tell(Notice(text=f"there are no tools of MCP servers: {e}"))

    async def stop(self) -> None:
        """Stop the servers."""
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.stop()


@dataclass(slots=True)
class ToolHand:
    """
    :param servers: the tools.
    :param clock: the reactor, for time limits.
    :param limit: most bytes of a result that are kept.
    :param narrowed: whether agents above have policies of their own.
    :param fallback: for steps that come when there are no servers any more.
    """

    servers: ServerTools
    clock: IReactorTime
    limit: int
    narrowed: bool
    fallback: CallAdmission
    kind: StepKind = StepKind.TOOL
    _judged: dict[int, JudgedCall] = field(default_factory=dict, init=False)
    _running: Deferred[CommandResult] | None = field(default=None, init=False)

    @property
    def admission(self) -> CallAdmission:
        """That of the servers' gate."""
        return self.fallback if self.servers.gate is None else self.servers.gate.admission

    def specs(self) -> Sequence[ToolSpec]:
        """:returns: the tools that can be called now, by the names of agents."""
        return [
            ToolSpec(tool.public_name, str(tool.definition.get("description") or ""), dict(tool.schema))
            for tool in self._tools()
        ]

    def names(self, step: ProposedStep) -> tuple[str, str]:
        """:returns: the server, and its name of the tool."""
        tool = self._tool(step.arguments["tool"])
        return ("shell", str(step.arguments["tool"])) if tool is None else (tool.server, tool.name)

    def proposed(self, number: int, use: ToolUse, directory: str) -> ProposedStep:
        """
        :returns: a call as a step.
        :raises UsageError: there is no such tool.
        """
        if self._tool(use.name) is None:
            raise UsageError(f"there is no tool {use.name}")
        return _step(number, use.name, dict(use.input))

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what the policy says now, hooks left out."""
        tool, gate, arguments = self._tool(step.arguments["tool"]), self.servers.gate, step.arguments["arguments"]
        if tool is None or gate is None:
            return JudgedStep(step, Verdict(Decision.DENY, "unknown-tool", "there is no such tool", {}), Risk.UNKNOWN)
        return JudgedStep(step, self._narrowed(gate.preview(tool.server, tool.name, arguments)), Risk.UNKNOWN)

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what policy and hooks say."""
        tool, gate = self._tool(step.arguments["tool"]), self.servers.gate
        if tool is None or gate is None:
            return self.preview(step, directory)
        call = gate.admission.open(tool.server, tool.name)
        judged = await gate.judge(call, step.arguments["arguments"])
        by = "policy"
        if judged.arguments != step.arguments["arguments"]:
            step, by = _step(step.number, tool.public_name, judged.arguments, step.purpose), "policy, changed by a hook"
        verdict = self._narrowed(judged.verdict)
        self._judged = {step.number: judged}
        return JudgedStep(step, verdict, Risk.UNKNOWN, by, judged.changes.creates)

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """The gate has told the hooks."""
        return True

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        """:returns: the definition under which an approval of it can be kept."""
        return self._tool(judged.step.arguments["tool"])

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        """Make the call that was judged last."""
        gate, prepared = self.servers.gate, self._judged.pop(judged.step.number, None)
        if gate is None or prepared is None:
            self.admission.close(call, "failed", error="the servers have ended")
            return CommandResult(StepOutcome.FAILED, None, b"", reason="the servers have ended")
        prepared = replace(prepared, verdict=judged.verdict)
        self._running = Deferred.fromCoroutine(self._made(gate, call, prepared, how.show))
        self._running.addTimeout(how.seconds, self.clock)
        try:
            return await self._running
        except TimeoutError:
            return CommandResult(StepOutcome.TIMED_OUT, None, b"", reason=f"no result within {how.seconds:g} s")
        except CancelledError:
            return CommandResult(StepOutcome.INTERRUPTED, None, b"")
        finally:
            self._running = None

    async def _made(
        self, gate: Gate, call: OpenCall, judged: JudgedCall, show: Callable[[bytes], None]
    ) -> CommandResult:
        result = await gate.make(call, judged)
        data = result_text(result.raw).encode("utf-8", "replace").replace(b"\n", b"\r\n")
        left_out = max(len(data) - self.limit, 0)
        data = data[: self.limit]
        show(data + b"\r\n")
        return CommandResult(StepOutcome.FAILED if result.is_error else StepOutcome.DONE, None, data, left_out)

    def interrupt(self) -> None:
        """Cancel the call."""
        if self._running is not None:
            self._running.cancel()

    def kill(self) -> None:
        """Cancel the call."""
        self.interrupt()

    def _tools(self) -> list[ToolDefinition]:
        return [] if self.servers.gate is None else self.servers.gate.tools()

    def _tool(self, name: str) -> ToolDefinition | None:
        return next((tool for tool in self._tools() if tool.public_name == name), None)

    def _narrowed(self, verdict: Verdict) -> Verdict:
        """Agents above may have other rules for tools, which their tables do not say."""
        if not self.narrowed or verdict.decision is not Decision.ALLOW:
            return verdict
        reason = "the agent that started this one may not be allowed to call tools"
        return msgspec.structs.replace(verdict, decision=Decision.ESCALATE, rule=PARENT_RULE, reason=reason)


def _step(number: int, name: str, arguments: dict[str, Any], purpose: str = "") -> ProposedStep:
    return ProposedStep(
        number=number,
        command=f"{name} {msgspec.json.encode(arguments).decode()}",
        purpose=purpose,
        kind=StepKind.TOOL,
        arguments={"tool": name, "arguments": arguments},
    )


def result_text(raw: bytes) -> str:
    """
    :param raw: a ``CallToolResult`` as JSON.
    :returns: its texts; of other parts, what they are.
    """
    try:
        result = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "the result is not JSON"
    if not isinstance(result, dict):
        return "the result is no object"
    parts = result.get("content")
    texts = [_part(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    if not texts and "structuredContent" in result:
        return msgspec.json.encode(result["structuredContent"]).decode()
    return "\n".join(texts)


def _part(part: dict[str, Any]) -> str:
    if isinstance(text := part.get("text"), str):
        return text
    kind, media = part.get("type"), part.get("mimeType")
    return f"[{kind if isinstance(kind, str) else 'part'}{f' {media}' if isinstance(media, str) else ''}]"
