"""What plans are, what judges their steps, and what they are run with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ironcurtain.command_rules import Risk
from ironcurtain.escalation import EscalationQueue
from ironcurtain.mcp_proxy.admission import CallAdmission
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.policy import Verdict
from ironcurtain.policy.verdict import Reversal
from ironcurtain.shell.execution import CommandResult, CommandRunner
from ironcurtain.shell.messages import Message, ProposedStep

SERVER, TOOL = "shell", "run"
"""By what names commands stand in the audit log and in escalations."""


class ConfirmMode(StrEnum):
    """What a person is asked before commands run."""

    AUTO = "auto"
    """Only about what the policy does not allow."""

    PLAN = "plan"
    """About each plan, once."""

    EACH = "each"
    """About each command."""


class PlanEnding(Enum):
    """Why a plan is over."""

    COMPLETED = "completed"
    STEP_FAILED = "a step failed"
    STEP_DENIED = "the policy denied a step"
    STEERED = "the user gave further instructions"
    REFUSED = "the user denied it"
    CANCELLED = "the user cancelled it"


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """
    What the policy says of a command.

    :param command: what may run: as proposed, or as a hook changed it.
    :param by: who decided: ``policy``, or the name of a hook.
    """

    command: str
    verdict: Verdict
    risk: Risk
    by: str = "policy"


class StepJudge(Protocol):
    """The policy for commands, with its hooks."""

    def preview(self, command: str, directory: str) -> JudgedStep:
        """:returns: what it says now, hooks left out."""

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what it says when the step's turn has come."""

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how it ended.

        :returns: whether the plan may go on.
        """

    def tool(self, judged: JudgedStep) -> ToolDefinition:
        """:returns: the definition under which an approval of such a command can be kept."""


@dataclass(frozen=True, slots=True)
class PlanParts:
    """
    What plans are run with.

    :param by: who decides here, for the records.
    :param directory: gives the directory that the shell is in.
    :param resumed: fires when commands may be typed: not while the user has left the agent for the shell.
    :param text: makes text of a command's output, without escape sequences and secrets.
    :param tell: gets each message for front ends.
    :param prepare: called before the first step of a plan that may run; returns whether there is a snapshot.
    :param finish: called after the last step of such a plan.
    :param snapshots: whether the settings say that there is one.
    :param seconds: how long a command may take, and a plan.
    """

    judge: StepJudge
    admission: CallAdmission
    escalations: EscalationQueue
    runner: CommandRunner
    clock: IReactorTime
    confirm: ConfirmMode
    by: str
    directory: Callable[[], str]
    resumed: Callable[[], Deferred[None]]
    text: Callable[[bytes], str]
    tell: Callable[[Message], None]
    prepare: Callable[[], Awaitable[bool]]
    finish: Callable[[], Awaitable[None]]
    snapshots: bool
    command_seconds: float
    plan_seconds: float

    def judged(self, step: ProposedStep, judged: JudgedStep) -> ProposedStep:
        """:returns: the step as the policy judges it."""
        verdict, undo = judged.verdict, judged.verdict.reversal
        if undo is Reversal.SNAPSHOT and not self.snapshots:
            undo = Reversal.NO_SNAPSHOT
        return msgspec.structs.replace(
            step,
            command=judged.command,
            risk=judged.risk,
            decision=str(verdict.decision),
            rule=verdict.rule,
            reason=verdict.reason,
            undo=undo.value,
        )
