"""The policy for commands: the gate, and the user's hooks between its two steps."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ironcurtain.command_rules import Risk
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.hooks import HookAction, Hooks, HookVerdict
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.messages import Message, ProposedStep
from ironcurtain.shell.model import SERVER, TOOL
from ironcurtain.shell.narrowing import NarrowedGate
from ironcurtain.shell.tools import JudgedStep, finished_by

_FIXED = {"type": "string", "enum": []}
RUN_TOOL = ToolDefinition(
    SERVER,
    TOOL,
    f"{SERVER}.{TOOL}",
    {"inputSchema": {"type": "object", "properties": {"command": _FIXED, "directory": _FIXED}}},
)
"""A kept approval covers the same command in the same directory: neither argument has a bound of its own."""


class HookedJudge(msgspec.Struct, frozen=True):
    """
    :param instruction: gives what the user has asked for.
    :param tell: gets messages for front ends.
    """

    gate: NarrowedGate
    hooks: Hooks
    instruction: Callable[[], str]
    tell: Callable[[Message], None]

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what the policy says now, hooks left out."""
        return JudgedStep(step, self.gate.judged(step.command, directory), self.gate.risk(step.command, directory))

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """
        Judge a command whose turn has come: what nothing can allow is denied before any hook runs, and a command that
        a hook changed is judged from the beginning.
        """
        if (denied := self.gate.denied(step.command, directory)) is not None:
            return JudgedStep(step, denied, self.gate.risk(step.command, directory))
        answer = await self.hooks.before(self._action(step, directory, self.gate.risk(step.command, directory)))
        if answer.decision == "deny":
            return JudgedStep(step, _denied(answer, step.command, directory), step.risk, answer.hook)
        judged = self.preview(msgspec.structs.replace(step, command=answer.command or step.command), directory)
        return judged if not answer.hook else replace(judged, by=f"{judged.by}, changed by {answer.hook}")

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how a command ended.

        :returns: whether the plan may go on.
        """
        self.gate.ran(step.command)
        action = self._action(step, directory, step.risk)
        return await finished_by(self.hooks, msgspec.structs.replace(action, exit_code=result.status), self.tell)

    def tool(self, judged: JudgedStep) -> ToolDefinition:
        """:returns: the definition under which an approval of such a command can be kept."""
        return RUN_TOOL

    def _action(self, step: ProposedStep, directory: str, risk: Risk) -> HookAction:
        return HookAction(
            command=step.command,
            directory=directory,
            risk=str(risk),
            instruction=self.instruction(),
            step=step.number,
        )


def _denied(answer: HookVerdict, command: str, directory: str) -> Verdict:
    arguments = {"command": command, "directory": directory}
    return Verdict(Decision.DENY, answer.rule, answer.reason or "a hook denied it", arguments)
