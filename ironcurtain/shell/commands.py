"""Steps that are commands, which are typed into the user's shell."""

from __future__ import annotations

from typing import Final

import msgspec

from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.shell.context import SHELL_TOOL
from ironcurtain.shell.execution import CommandResult, CommandRunner
from ironcurtain.shell.messages import ProposedStep, StepKind, StepOutcome
from ironcurtain.shell.model import SERVER, TOOL
from ironcurtain.shell.tools import JudgedStep, StepJudge, StepRun, purpose_of, text_argument

STATUSES: Final = {StepOutcome.DONE: "success", StepOutcome.NOT_RUN: "failed", StepOutcome.DENIED: "denied"}
"""How steps are recorded that ended so; others are errors."""


class CommandHand(msgspec.Struct):
    """
    :param judge: judges commands.
    :param runner: types them.
    """

    admission: CallAdmission
    judge_: StepJudge
    runner: CommandRunner
    kind: StepKind = StepKind.COMMAND

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
        return self.judge_.preview(step, directory)

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what policy and hooks say."""
        return await self.judge_.judge(step, directory)

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how a command ended.

        :returns: whether the plan may go on.
        """
        return await self.judge_.finished(step, directory, result)

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        """:returns: the definition under which an approval of such a command can be kept."""
        return self.judge_.tool(judged)

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        """Type the command, and wait for its end."""
        try:
            result = await self.runner.run(judged.step.command, how.seconds, how.show)
        except BaseException as e:
            self.admission.close(call, "failed", error=str(e) or type(e).__name__)
            raise
        self.admission.close(call, STATUSES.get(result.outcome, "error"), result.output, result.reason)
        return result

    def interrupt(self) -> None:
        """As Ctrl-C."""
        self.runner.interrupt()

    def kill(self) -> None:
        """With SIGKILL."""
        self.runner.kill()
