"""What plans are, and what they are run with."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.policy.verdict import Reversal
from ironcurtain.shell.consequences import changed_places
from ironcurtain.shell.front_ends import FrontEnds
from ironcurtain.shell.messages import Message, ProposedStep
from ironcurtain.shell.plan_snapshots import PlanSnapshots
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.shell.terminal_lines import as_read
from ironcurtain.shell.tools import Hand, Hands, JudgedStep
from ironcurtain.shell.wrapped import WrappedShell

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


class PlanParts(msgspec.Struct, frozen=True):
    """
    What plans are run with.

    :param hands: judge and do the steps.
    :param by: who decides here, for the records.
    :param directory: gives the directory that the shell is in.
    :param resumed: fires when commands may be typed: not while the user has left the agent for the shell.
    :param text: makes text of a command's output, without escape sequences and secrets.
    :param tell: gets each message for front ends.
    :param undo: takes snapshots.
    :param seconds: how long a command may take, and a plan.
    """

    hands: Hands
    escalations: EscalationQueue
    clock: IReactorTime
    confirm: ConfirmMode
    by: str
    directory: Callable[[], str]
    resumed: Callable[[], Deferred[None]]
    text: Callable[[bytes], str]
    tell: Callable[[Message], None]
    undo: PlanSnapshots
    command_seconds: float
    plan_seconds: float

    @classmethod
    def of(
        cls, around: ShellSurroundings, hands: Sequence[Hand], wrapped: WrappedShell, front_ends: FrontEnds
    ) -> PlanParts:
        """:returns: those of one session."""
        own = around.settings.shell
        return cls(
            hands=Hands(hands),
            escalations=around.core.escalations,
            clock=around.reactor,
            confirm=ConfirmMode(around.options.confirm or own.confirm_mode),
            by=f"local:{pwd.getpwuid(os.geteuid()).pw_name}",
            directory=lambda: wrapped.directory,
            resumed=front_ends.holder.resumed,
            text=lambda data: around.scrubber.text(as_read(data, around.size[0])),
            tell=front_ends.tell,
            undo=PlanSnapshots.of(around, front_ends.tell),
            command_seconds=own.command_seconds,
            plan_seconds=own.plan_seconds,
        )

    def preview(self, step: ProposedStep) -> ProposedStep:
        """:returns: the step as the policy judges it now."""
        return self.judged(self.hands.of(step).preview(step, self.directory()))

    def judged(self, judged: JudgedStep) -> ProposedStep:
        """:returns: the step as the policy judges it."""
        verdict, undo = judged.verdict, judged.verdict.reversal
        if undo is Reversal.SNAPSHOT and not self.undo.possible:
            undo = Reversal.NO_SNAPSHOT
        return msgspec.structs.replace(
            judged.step,
            risk=judged.risk,
            decision=str(verdict.decision),
            rule=verdict.rule,
            reason=verdict.reason,
            undo=undo.value,
            where=changed_places(verdict),
        )
