"""Put shells together for the session manager."""

from __future__ import annotations

import hashlib
import os
import pwd
import random
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.home.layout import person_home
from ironcurtain.home.settings import Provider, Settings
from ironcurtain.llm import prices
from ironcurtain.llm.model import TokenUsage
from ironcurtain.llm.registry import Chosen, ModelSurroundings, configured_backend, fallback_for, needs_key
from ironcurtain.llm.tokens import count_tokens
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.policy import Policy
from ironcurtain.providers.keys import real_key
from ironcurtain.secrets.redaction import Secret
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Core, NoTools, SessionKind, Tools
from ironcurtain.session.tools import ToolFiles, session_protected, teller
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.assistant import Assistant, AssistantLimits
from ironcurtain.shell.context import Prompt, ShellState, prompt, result
from ironcurtain.shell.execution import CommandRunner
from ironcurtain.shell.gate import CommandGate
from ironcurtain.shell.hooks import Hooks
from ironcurtain.shell.integration import Prepared, prepare
from ironcurtain.shell.judge import HookedJudge
from ironcurtain.shell.messages import StepCompleted
from ironcurtain.shell.model import ConfirmMode, PlanParts
from ironcurtain.shell.scrubbing import Scrubber, environment, secrets_of
from ironcurtain.shell.terminal_lines import TerminalLines, as_read
from ironcurtain.shell.terminal_mode import AgentMode
from ironcurtain.shell.trace import join_trace, with_sink
from ironcurtain.shell.trace_sinks import FileSink, make_sink
from ironcurtain.shell.tracer import Tracer
from ironcurtain.shell.window import ContextWindow
from ironcurtain.shell.wrapped import WrappedShell
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ScreenModel

NAME = "shell"

PIPE_SIZE = (120, 40)
"""Columns and rows of the terminal that a shell has where nobody looks at one."""

ROUNDS = 20
"""Most model requests for one instruction."""


class ShellOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What a request says about a shell.

    :param directory: where it starts.
    :param args: its arguments.
    :param program: the shell; empty: ``shell.command``, else ``$SHELL``.
    :param backend: in place of ``shell.backends``.
    :param confirm: in place of ``shell.confirm_mode``.
    """

    directory: str
    args: tuple[str, ...] = ()
    program: str = ""
    backend: str = ""
    model: str = ""
    confirm: Literal["", "auto", "each", "plan"] = ""


class ShellKind:
    """
    :param environ: ours, which is the user's.
    :param screen: makes the screen model of a size, in columns and rows.
    :param agent_mode: makes what draws the agent's part in a terminal.
    """

    def __init__(
        self,
        reactor: Any,
        environ: Mapping[str, str],
        screen: Callable[[int, int], ScreenModel],
        agent_mode: Callable[[ShellAgent, Hub, IReactorTime], AgentMode],
    ) -> None:
        self._reactor, self._environ, self._screen, self._agent_mode = reactor, environ, screen, agent_mode

    def kind(self) -> SessionKind[Tools]:
        """:returns: it, for the table of kinds."""
        return SessionKind(
            NAME, lambda core: NoTools(), self._make_agent, None, self._check, _check_remote, no_terminal=""
        )

    async def _check(self, request: SessionRequest) -> None:
        options_of(request)

    def _make_agent(self, core: Core, tools: Tools) -> ShellAgent:
        return _Making(core, self._reactor, self._environ).agent(self._screen, self._agent_mode)


def _check_remote(request: SessionRequest) -> None:
    raise UsageError("a shell runs in the command 'ironcurtain shell', and can be attached to from elsewhere")


def options_of(request: SessionRequest) -> ShellOptions:
    """:raises UsageError: they are no options of a shell."""
    try:
        return msgspec.convert(request.options["shell"], ShellOptions)
    except (KeyError, msgspec.ValidationError) as e:
        raise UsageError(f"these are no options of a shell: {e}") from None


class _Making:
    """One session's parts."""

    def __init__(self, core: Core, reactor: Any, environ: Mapping[str, str]) -> None:
        self._core, self._reactor, self._environ = core, reactor, environ
        self._options, self._settings = options_of(core.request), core.services.settings
        self._size = core.request.terminal or PIPE_SIZE
        self._home = person_home(environ, os.geteuid())
        self._mark = secrets.token_hex(8)
        for secret in secrets_of(environ):  # so that they are not in the session's files either
            core.services.redactor.add_own(secret)
        self._scrubber = Scrubber(core.services.redactor, environ, self._settings.context.scrub)
        self._instruction = ""
        self._chosen: Chosen | None = None
        context = join_trace(environ, secrets.token_hex)
        self._trace = with_sink(context, self._settings.telemetry, str(core.services.home.traces))

    def agent(
        self,
        screen: Callable[[int, int], ScreenModel],
        agent_mode: Callable[[ShellAgent, Hub, IReactorTime], AgentMode],
    ) -> ShellAgent:
        core, own = self._core, self._settings.shell
        nonce = secrets.token_hex(16)
        lines = TerminalLines(self._settings.context.max_terminal_lines, self._size[0])
        prepared = self._prepared(nonce)
        wrapped = WrappedShell(self._reactor, prepared, nonce, self._options.directory, self._size, lines)
        runner = CommandRunner(wrapped.pty, self._reactor, own.output_bytes)
        runner.line, runner.end_line = wrapped.line, wrapped.end_line
        agent = ShellAgent(core, wrapped, runner)
        agent.assistant = self._assistant(agent, wrapped, runner)
        agent.journal.clean = self._scrubber.text
        agent.trace_id = self._trace.trace_id
        if (tracer := self._tracer()) is not None:
            agent.watch(tracer.receive)
            agent.ending = tracer.close
        if core.request.terminal is not None:
            agent.terminal = Hub(agent, self._reactor, screen(*self._size), self._size)
            agent.agent_mode = agent_mode(agent, agent.terminal, self._reactor)
        return agent

    def _prepared(self, nonce: str) -> Prepared:
        own, options = self._settings.shell, self._options
        words = [options.program] if options.program else shlex.split(own.command) or [_login_shell(self._environ)]
        environ = {name: value for name, value in self._environ.items() if name not in ("COLUMNS", "LINES")}
        environ |= self._trace.environment() if self._trace.sink is not None else {}
        args = (*words[1:], *options.args)
        if not own.integration:
            return Prepared((words[0], *args), environ, False, "shell.integration is false")
        return prepare(words[0], args, environ, nonce)

    def _assistant(self, agent: ShellAgent, wrapped: WrappedShell, runner: CommandRunner) -> Assistant:
        core, own = self._core, self._settings.shell
        policy = self._policy()
        gate = self._gate(policy, wrapped)
        hooks = Hooks(self._reactor, core.services.home.hooks, self._environ, own.hook_seconds, os.geteuid())
        parts = PlanParts(
            judge=HookedJudge(gate, hooks, lambda: self._instruction, agent.tell),
            admission=self._admission(policy),
            escalations=core.escalations,
            runner=runner,
            clock=self._reactor,
            confirm=ConfirmMode(self._options.confirm or own.confirm_mode),
            by=f"local:{pwd.getpwuid(os.geteuid()).pw_name}",
            directory=lambda: wrapped.directory,
            resumed=agent.resumed,
            text=lambda data: self._scrubber.text(as_read(data, self._size[0])),
            tell=agent.tell,
            command_seconds=own.command_seconds,
            plan_seconds=own.plan_seconds,
        )
        return Assistant(
            self._choose,
            lambda instruction: self._prompt(instruction, wrapped),
            ContextWindow(lambda text: count_tokens(text, self._model)),
            self._shown,
            self._trace.traceparent if self._settings.telemetry.share_with_backend else "",
            Accounting(self._budget(), self._cost, core.emit, self._reactor.seconds),
            AssistantLimits(ROUNDS, own.max_plan_steps, self._settings.model.max_tokens),
            parts,
        )

    def _tracer(self) -> Tracer | None:
        services, telemetry = self._core.services, self._settings.telemetry
        if self._trace.sink is None:
            return None
        sink = make_sink(self._trace.sink, lambda line: print(line.decode(), end="", flush=True))
        if isinstance(sink, FileSink):
            try:
                sink.prune(services.now(), telemetry.retain_days)
            except Unavailable as e:  # a shell without traces is better than none
                self._core.emit(events.Notice(text=f"no traces: {e}"))
                return None
        return Tracer(
            self._trace,
            sink,
            services.now,
            secrets.token_hex,
            lambda: self._chosen.provider.name if self._chosen is not None else "",
            self._scrubber.text,
            anonymize=telemetry.anonymize,
        )

    def _policy(self) -> Policy:
        return ToolFiles.chosen(self._core.services.home, self._core.request.options).load_policy()

    def _gate(self, policy: Policy, wrapped: WrappedShell) -> CommandGate:
        approval = read_approval(policy.approval, policy.source, self._home)
        protected = session_protected(self._core, self._environ)
        return CommandGate(approval, protected, self._home, os.path.realpath, wrapped.name)

    def _admission(self, policy: Policy) -> CallAdmission:
        core = self._core
        version = hashlib.sha256(msgspec.json.encode(policy.approval, order="deterministic")).hexdigest()[:16]
        return CallAdmission(
            session_id=core.id,
            audit=core.audit,
            escalations=core.escalations,
            clock=self._reactor,
            new_id=lambda: secrets.token_hex(16),
            policy_version=lambda: version,
            events=teller(core.emit, core.services.redactor),
            home=self._home,
        )

    def _budget(self) -> BudgetMeter:
        limits = BudgetLimits(**msgspec.structs.asdict(self._settings.budget))
        most = float(self._settings.shell.max_tokens_per_session)
        tokens = most if limits.tokens is None else min(limits.tokens, most)
        return BudgetMeter(BudgetLimits(limits.steps, limits.seconds, tokens, limits.cost))

    def _cost(self, usage: TokenUsage) -> float | None:
        known = {name: prices.TokenPrice(**msgspec.structs.asdict(p)) for name, p in self._settings.prices.items()}
        return prices.cost(self._model, usage, known)

    @property
    def _model(self) -> str:
        return self._chosen.model if self._chosen is not None else ""

    async def _choose(self) -> Chosen:
        if self._chosen is None:
            self._chosen = await choose_model(
                self._settings, self._options.backend, self._options.model, self._core, self._reactor, self._environ
            )
        return self._chosen

    def _prompt(self, instruction: str, wrapped: WrappedShell) -> Prompt:
        self._instruction = instruction
        state = ShellState(
            directory=wrapped.directory,
            shell=wrapped.name,
            platform=sys.platform,
            status=wrapped.status,
            environ=environment(self._environ, self._settings.context.include_env),
            terminal=tuple(wrapped.lines.lines()),
        )
        return prompt(instruction, state, self._scrubber.text, self._mark)

    def _shown(self, step: StepCompleted, remark: str) -> str:
        return result(step.exit_code, step.output, self._scrubber.text, self._mark, remark)


async def choose_model(
    settings: Settings, backend: str, model: str, core: Core, reactor: Any, environ: Mapping[str, str]
) -> Chosen:
    """
    :param backend: in place of those of the settings; empty: those.
    :param model: for the first backend; empty: its own.
    :raises ConfigurationError: there is no key, or a setting is wrong.
    """
    backends = [backend] if backend else list(settings.shell.backends) or [configured_backend(settings.model)]
    keys: dict[str, Secret] = {}
    for each in backends:
        if (name := needs_key(each, None)) is not None:
            keys[name] = await real_key(name, settings.providers.get(name, Provider()).key, environ, reactor)
            core.services.redactor.add(keys[name])
    tables = {name: msgspec.to_builtins(table) for name, table in settings.providers.items()}
    around = ModelSurroundings(
        reactor, core.services.clock, random.random, keys.__getitem__, settings.model.stall_seconds, environ
    )
    return fallback_for(backends, model or settings.model.name or None, tables, around)


def _login_shell(environ: Mapping[str, str]) -> str:
    if shell := environ.get("SHELL", ""):
        return shell
    try:
        return pwd.getpwuid(os.geteuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"
