"""Steps that are commands, which are typed into the user's shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from ironcurtain.command_rules import Risk
from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.hooks import HookAction, HookVerdict
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.shell.context import SHELL_TOOL
from ironcurtain.shell.execution import CommandResult, CommandRunner
from ironcurtain.shell.messages import ProposedStep, StepKind, StepOutcome
from ironcurtain.shell.model import SERVER, TOOL
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.tools import JudgedStep, StepRun, purpose_of, text_argument

STATUSES: Final = {StepOutcome.DONE: "success", StepOutcome.NOT_RUN: "failed", StepOutcome.DENIED: "denied"}
"""How steps are recorded that ended so; others are errors."""

_FIXED = {"type": "string", "enum": []}
RUN_TOOL = ToolDefinition(
    SERVER,
    TOOL,
    f"{SERVER}.{TOOL}",
    {"inputSchema": {"type": "object", "properties": {"command": _FIXED, "directory": _FIXED}}},
)
"""A kept approval covers the same command in the same directory: neither argument has a bound of its own."""


@dataclass(slots=True)
class CommandHand:
    """
    :param policy: judges commands: with its gate, and the user's hooks between the two steps of that.
    :param runner: types them.
    """

    policy: StepPolicy
    runner: CommandRunner
    kind: StepKind = StepKind.COMMAND

    @property
    def admission(self) -> CallAdmission:
        """Of the session."""
        return self.policy.admission

    def specs(self) -> tuple[ToolSpec, ...]:
        """:returns: the tool ``shell``."""
        return (SHELL_TOOL,)

    def proposed(self, number: int, use: ToolUse, directory: str) -> ProposedStep:
        """
        :returns: a command as a step.
        :raises UsageError: the model named none.
        """
        return ProposedStep(number=number, command=text_argument(use, "command"), purpose=purpose_of(use))

    def names(self, step: ProposedStep) -> tuple[str, str]:
        """:returns: those of all commands."""
        return SERVER, TOOL

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what the policy says now, hooks left out."""
        gate = self.policy.gate
        return JudgedStep(step, gate.judged(step.command, directory), gate.risk(step.command, directory))

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """
        Judge a command whose turn has come: what nothing can allow is denied before any hook runs, and a command that
        a hook changed is judged from the beginning.
        """
        risk = self.policy.gate.risk(step.command, directory)
        if (denied := self.policy.gate.denied(step.command, directory)) is not None:
            return JudgedStep(step, denied, risk)
        answer = await self.policy.hooks.before(self._action(step, directory, risk))
        if answer.decision == "deny":
            return JudgedStep(step, _denied(answer, step.command, directory), step.risk, answer.hook)
        judged = self.preview(replace(step, command=answer.command or step.command), directory)
        return judged if not answer.hook else replace(judged, by=f"{judged.by}, changed by {answer.hook}")

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how a command ended.

        :returns: whether the plan may go on.
        """
        self.policy.gate.ran(step.command)
        action = self._action(step, directory, step.risk)
        return await self.policy.finished(replace(action, exit_code=result.status))

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        """:returns: the definition under which an approval of such a command can be kept."""
        return RUN_TOOL

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        """Type the command, and wait for its end."""
        try:
            result = await self.runner.run(judged.step.command, how.seconds, how.show)
        except BaseException as e:
            self.policy.admission.close(call, "failed", error=str(e) or type(e).__name__)
            raise
        self.policy.admission.close(call, STATUSES.get(result.outcome, "error"), result.output, result.reason)
        return result

    def interrupt(self) -> None:
        """As Ctrl-C."""
        self.runner.interrupt()

    def kill(self) -> None:
        """With SIGKILL."""
        self.runner.kill()

    def _action(self, step: ProposedStep, directory: str, risk: Risk) -> HookAction:
        return HookAction(
            command=step.command,
            directory=directory,
            risk=str(risk),
            instruction=self.policy.instruction(),
            step=step.number,
        )


def _denied(answer: HookVerdict, command: str, directory: str) -> Verdict:
    arguments = {"command": command, "directory": directory}
    return Verdict(Decision.DENY, answer.rule, answer.reason or "a hook denied it", arguments)
