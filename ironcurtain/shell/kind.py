"""Put shells together for the session manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironcurtain.errors import UsageError
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Core, SessionKind
from ironcurtain.shell.agent import MakeAgentMode, MakeScreen, ShellAgent
from ironcurtain.shell.agents import AgentHand
from ironcurtain.shell.assistant import Assistant, AssistantLimits
from ironcurtain.shell.commands import CommandHand
from ironcurtain.shell.edits import EditHand
from ironcurtain.shell.execution import CommandRunner
from ironcurtain.shell.front_ends import FrontEnds
from ironcurtain.shell.model import PlanParts
from ironcurtain.shell.nesting import KIND, Nesting
from ironcurtain.shell.orphans import Orphans
from ironcurtain.shell.server_tools import ServerTools, ToolHand
from ironcurtain.shell.session_model import SessionModel
from ironcurtain.shell.session_prompts import SessionPrompts
from ironcurtain.shell.starting import ShellStart, options_of
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.shell.tracer import open_tracer
from ironcurtain.shell.wrapped import WrappedShell

ROUNDS = 20
"""Most model requests for one instruction."""


class ShellKind:
    """
    :param environ: ours, which is the user's.
    :param started: the shell that runs in this process's terminal already, if any.
    """

    def __init__(
        self,
        reactor: Any,
        environ: Mapping[str, str],
        make_screen: MakeScreen,
        make_agent_mode: MakeAgentMode,
        started: ShellStart | None,
    ) -> None:
        self._reactor, self._environ, self._started = reactor, environ, started
        self._make_screen, self._make_agent_mode = make_screen, make_agent_mode

    def kind(self) -> SessionKind[ServerTools]:
        """:returns: it, for the table of kinds."""
        return SessionKind(
            KIND,
            lambda core: ServerTools.of(core, self._reactor, self._environ),
            self._make_agent,
            None,
            _check,
            _check_remote,
            own_spans=True,
            no_terminal="",
        )

    def _make_agent(self, core: Core, tools: ServerTools) -> ShellAgent:
        around = ShellSurroundings.of(core, self._reactor, self._environ, self._started)
        wrapped = WrappedShell(self._reactor, around.start, around.options.directory, around.size, around.settings)
        front_ends = FrontEnds(core, wrapped, around.scrubber.text, around.start.trace.trace_id)
        runner = CommandRunner(wrapped, self._reactor, around.settings.shell.output_bytes, front_ends.tell)
        model = SessionModel(around, front_ends.tell)
        assistant = _assistant(around, wrapped, front_ends, runner, model, tools)
        agent = ShellAgent(core, wrapped, runner, front_ends, assistant)
        if (tracer := open_tracer(around, lambda: model.provider)) is not None:
            front_ends.watch(tracer.receive)
            front_ends.at_end(tracer.close)
        orphans = Orphans(self._reactor)
        orphans.begin()
        front_ends.at_end(orphans.stop)
        if core.request.terminal is not None:
            agent.open(self._make_screen, self._make_agent_mode, around.size)
        return agent


def _assistant(
    around: ShellSurroundings,
    wrapped: WrappedShell,
    front_ends: FrontEnds,
    runner: CommandRunner,
    model: SessionModel,
    tools: ServerTools,
) -> Assistant:
    nesting, prompts, own = Nesting.of(around), SessionPrompts(around, wrapped), around.settings.shell
    policy = StepPolicy.of(around, nesting.policies, wrapped.name, lambda: prompts.instruction, front_ends.tell)
    requests = model.requests(nesting, tools)
    hands = (
        CommandHand(policy, runner),
        EditHand(policy, around.protected),
        ToolHand(tools, around.reactor, own.output_bytes, policy.gate.narrows, policy.admission),
        AgentHand(around, policy, nesting.policies, requests.budget),
    )
    parts = PlanParts.of(around, hands, wrapped, front_ends)
    return Assistant(requests, prompts.describe, prompts.result, AssistantLimits(ROUNDS, own.max_plan_steps), parts)


async def _check(request: SessionRequest) -> SessionRequest:
    options_of(request.options)
    return request


def _check_remote(request: SessionRequest) -> None:
    raise UsageError("a shell runs in the command 'ironcurtain shell', and can be attached to from elsewhere")
