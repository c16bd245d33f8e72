"""Put shells together for the session manager."""

from __future__ import annotations

import hashlib
import os
import pwd
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import SessionError, Unavailable, UsageError
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.home.user_paths import person_home
from ironcurtain.llm.registry import Chosen
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.services.line_sinks import FileSink
from ironcurtain.session import events
from ironcurtain.session.call_events import teller
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.models import backends_of
from ironcurtain.session.parts import Core, SessionKind
from ironcurtain.session.tool_files import ToolFiles
from ironcurtain.session.tools import has_servers, make_proxy, session_hooks, session_protected
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.shell.agents import AgentHand
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.assistant import Assistant, AssistantLimits
from ironcurtain.shell.commands import CommandHand
from ironcurtain.shell.edits import EditHand
from ironcurtain.shell.execution import CommandRunner
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.inheritance import AgentPolicies
from ironcurtain.shell.judge import HookedJudge
from ironcurtain.shell.messages import Notice
from ironcurtain.shell.model import ConfirmMode, PlanParts
from ironcurtain.shell.model_requests import ModelRequests
from ironcurtain.shell.narrowing import DEEPEST_AGENT, NarrowedGate
from ironcurtain.shell.nesting import KIND, Nesting, agents_above, policies_above, working
from ironcurtain.shell.orphans import Orphans
from ironcurtain.shell.plan_snapshots import PlanSnapshots
from ironcurtain.shell.scrubbing import Scrubber, secrets_of
from ironcurtain.shell.server_tools import ServerTools, ToolHand
from ironcurtain.shell.session_budget import SessionBudget
from ironcurtain.shell.session_model import SessionModel
from ironcurtain.shell.session_prompts import SessionPrompts
from ironcurtain.shell.starting import ShellStart, options_of, shell_start
from ironcurtain.shell.terminal_lines import TerminalLines, as_read
from ironcurtain.shell.terminal_mode import AgentMode
from ironcurtain.shell.tools import Hands
from ironcurtain.shell.tracer import Tracer
from ironcurtain.shell.window import ContextWindow
from ironcurtain.shell.wrapped import WrappedShell
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ScreenModel
from ironcurtain.traces.sinks import make_sink
from ironcurtain.traces.span import recent

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.proxy import McpProxy

NAME = KIND

PIPE_SIZE = (120, 40)
"""Columns and rows of the terminal that a shell has where nobody looks at one."""

CLEARED = "what you typed and no command read is off the line, in the shell's kill ring: Ctrl-Y brings it back"

ROUNDS = 20
"""Most model requests for one instruction."""


class ShellKind:
    """
    :param environ: ours, which is the user's.
    :param screen: makes the screen model of a size, in columns and rows.
    :param agent_mode: makes what draws the agent's part in a terminal.
    :param started: the shell that runs in this process's terminal already, if any.
    """

    def __init__(
        self,
        reactor: Any,
        environ: Mapping[str, str],
        screen: Callable[[int, int], ScreenModel],
        agent_mode: Callable[[ShellAgent, Hub, IReactorTime], AgentMode],
        started: ShellStart | None,
    ) -> None:
        self._reactor, self._environ, self._screen, self._agent_mode = reactor, environ, screen, agent_mode
        self._started = started

    def kind(self) -> SessionKind[ServerTools]:
        """:returns: it, for the table of kinds."""
        return SessionKind(
            NAME,
            self._make_tools,
            self._make_agent,
            None,
            self._check,
            _check_remote,
            own_spans=True,
            no_terminal="",
        )

    async def _check(self, request: SessionRequest) -> SessionRequest:
        options_of(request.options)
        return request

    def _make_tools(self, core: Core) -> ServerTools:
        def make() -> McpProxy | None:
            if not has_servers(core, self._environ):
                return None
            return make_proxy(core, self._reactor, self._environ, files_too=False)

        return ServerTools(make)

    def _make_agent(self, core: Core, tools: ServerTools) -> ShellAgent:
        return _Making(core, self._reactor, self._environ, self._started, tools).agent(self._screen, self._agent_mode)


def _check_remote(request: SessionRequest) -> None:
    raise UsageError("a shell runs in the command 'ironcurtain shell', and can be attached to from elsewhere")


class _Making:
    """One session's parts."""

    def __init__(
        self, core: Core, reactor: Any, environ: Mapping[str, str], started: ShellStart | None, tools: ServerTools
    ) -> None:
        self._core, self._reactor, self._environ, self._tools = core, reactor, environ, tools
        self._options, self._settings = options_of(core.request.options), core.services.settings
        self._size = core.request.terminal or PIPE_SIZE
        self._home = person_home(environ, os.geteuid())
        for secret in secrets_of(environ):  # so that they are not in the session's files either
            core.services.redactor.add_own(secret)
        self._scrubber = Scrubber(core.services.redactor, environ, self._settings.context.scrub)
        self._policy = ToolFiles.chosen(core.services.home, core.request.options).load_policy()
        self._start = started or shell_start(
            self._options,
            self._settings,
            environ,
            str(core.services.home.traces),
            self._policy.approval,
            secrets.token_hex,
        )
        self._protected = session_protected(core, environ)

    def agent(
        self,
        screen: Callable[[int, int], ScreenModel],
        agent_mode: Callable[[ShellAgent, Hub, IReactorTime], AgentMode],
    ) -> ShellAgent:
        core, own = self._core, self._settings.shell
        lines = TerminalLines(self._settings.context.max_terminal_lines, self._size[0])
        wrapped = WrappedShell(
            self._reactor, self._start.prepared, self._start.nonce, self._options.directory, self._size, lines
        )
        wrapped.recorded = own.history
        runner = CommandRunner(wrapped.pty, self._reactor, own.output_bytes)
        runner.line, runner.end_line = wrapped.line, wrapped.end_line
        agent = ShellAgent(core, wrapped, runner)
        runner.cleared = lambda: agent.tell(Notice(text=CLEARED))
        model = SessionModel(core, self._reactor, self._environ, self._options, agent.tell)
        agent.assistant = self._assistant(agent, model, wrapped, runner)
        agent.journal.clean = self._scrubber.text
        agent.watch(agent.journal.note)
        agent.front_ends.trace_id = self._start.trace.trace_id
        if (tracer := self._tracer(model)) is not None:
            agent.watch(tracer.receive)
            agent.front_ends.at_end(tracer.close)
        orphans = Orphans(self._reactor)
        orphans.begin()
        agent.front_ends.at_end(orphans.stop)
        if core.request.terminal is not None:
            hub = Hub(agent, self._reactor, screen(*self._size), self._size)
            agent.front_ends.terminal, agent.front_ends.agent_mode = hub, agent_mode(agent, hub, self._reactor)
        return agent

    def _assistant(
        self, agent: ShellAgent, model: SessionModel, wrapped: WrappedShell, runner: CommandRunner
    ) -> Assistant:
        core, own = self._core, self._settings.shell
        above = agents_above(core.services.home)
        policies = self._policies(above)
        gate = self._gate(wrapped, policies)
        hooks = session_hooks(core, self._reactor, self._environ)
        admission = self._admission()

        prompts = SessionPrompts(self._scrubber, self._environ, self._settings.context.include_env, wrapped)

        def asked() -> str:
            return prompts.instruction

        judge = HookedJudge(gate, hooks, asked, agent.tell)
        self._tools.tell = agent.tell
        calls = ToolHand(self._tools, self._reactor, own.output_bytes, gate.narrows, admission)
        nesting = Nesting(core.paths, working(above), policies)
        budget = SessionBudget(model.accounting(policies), core.request.terminal is not None, agent.tell, nesting)
        budget.settle()
        agents = AgentHand(
            self._reactor,
            admission,
            gate,
            hooks,
            asked,
            agent.tell,
            self._home,
            policies,
            self._start.trace,
            self._child_options(),
            self._environ,
            budget,
        )
        edits = EditHand(admission, gate, hooks, asked, agent.tell, self._home, self._protected)
        undo = self._settings.undo
        snapshots = PlanSnapshots(
            core.snapshots,
            Path(self._options.directory),
            self._protected,
            undo.shell and undo.turns > 0,
            agent.tell,
        )
        parts = PlanParts(
            hands=Hands([CommandHand(admission, judge, runner), edits, calls, agents]),
            escalations=core.escalations,
            clock=self._reactor,
            confirm=ConfirmMode(self._options.confirm or own.confirm_mode),
            by=f"local:{pwd.getpwuid(os.geteuid()).pw_name}",
            directory=lambda: wrapped.directory,
            resumed=agent.resumed,
            text=lambda data: self._scrubber.text(as_read(data, self._size[0])),
            tell=agent.tell,
            prepare=snapshots.prepare,
            finish=core.snapshots.end,
            snapshots=lambda: snapshots.possible,
            command_seconds=own.command_seconds,
            plan_seconds=own.plan_seconds,
        )

        async def choose() -> Chosen:
            await self._tools.ready()
            return await model.choose()

        requests = ModelRequests(
            choose,
            ContextWindow(model.count, model.context),
            budget,
            self._settings.model.max_tokens,
            self._start.trace.traceparent if self._settings.telemetry.share_with_backend else "",
            agent.tell,
        )
        return Assistant(
            requests,
            prompts.describe,
            prompts.result,
            AssistantLimits(ROUNDS, own.max_plan_steps),
            parts,
        )

    def _tracer(self, model: SessionModel) -> Tracer | None:
        services, telemetry = self._core.services, self._settings.telemetry
        if self._start.trace.sink is None:
            return None
        sink = make_sink(self._start.trace.sink, lambda line: print(line.decode(), end="", flush=True))
        if isinstance(sink, FileSink):
            try:
                sink.keep(lambda lines: recent(lines, services.now(), telemetry.retain_days))
            except Unavailable as e:  # a shell without traces is better than none
                self._core.emit(events.Notice(text=f"no traces: {e}"))
                return None
        return Tracer(
            self._start.trace,
            sink,
            services.now,
            secrets.token_hex,
            lambda: model.provider,
            self._scrubber.text,
            anonymize=telemetry.anonymize,
            export=services.export(telemetry, services.proxies),
        )

    def _child_options(self) -> tuple[str, ...]:
        """:returns: with which options agents below this one are started here."""
        backends = backends_of(self._options.backend)
        model = ("--model", self._options.model) if self._options.model else ()
        policy = self._core.request.options.get("policy")
        return (
            *(word for backend in backends if backend for word in ("--backend", backend)),
            *model,
            *(("--policy", str(policy)) if policy else ()),
        )

    def _policies(self, agents: Sequence[SessionPaths]) -> AgentPolicies:
        """
        :param agents: above this one.
        :returns: what this agent and those above it may do.
        :raises ConfigurationError: a policy above is wrong or cannot be read.
        :raises SessionError: too many agents are above this one.
        """
        above = policies_above(agents, self._environ)
        if max(above.depth, self._start.trace.depth) > DEEPEST_AGENT:
            raise SessionError("SESSION_INIT_FAILED", f"over {DEEPEST_AGENT} agents have started one another")
        return above.joined(self._policy.approval)

    def _gate(self, wrapped: WrappedShell, policies: AgentPolicies) -> NarrowedGate:
        """:raises ConfigurationError: a policy above is wrong."""
        policy, protected, directory = self._policy, self._protected, self._options.directory

        def gate(tables: Mapping[str, Any], source: str) -> CommandGate:
            approval = read_approval(tables, source, self._home)
            return CommandGate(approval, protected, self._home, os.path.realpath, directory, wrapped.name)

        own = gate(policy.approval, policy.source)
        others = [tables for tables in policies.tables if tables != policy.approval]
        return NarrowedGate(own, [gate(tables, "the policy above") for tables in others])

    def _admission(self) -> CallAdmission:
        core = self._core
        version = hashlib.sha256(msgspec.json.encode(self._policy.approval, order="deterministic")).hexdigest()[:16]
        return CallAdmission(
            session_id=core.id,
            audit=core.audit,
            escalations=core.escalations,
            clock=self._reactor,
            new_id=lambda: secrets.token_hex(16),
            policy_version=lambda: version,
            events=teller(core.emit, core.services.redactor),
            home=self._home,
            has_snapshot=lambda: core.snapshots.ready,
        )
