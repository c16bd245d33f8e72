"""
What the model of a shell can do: each kind of steps has a hand, which reads the model's uses of its tools, judges the
steps that they become, and makes them so.

All kinds stand in the same plans, with the same keys, questions, records and limits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from ironcurtain.command_rules import Risk
from ironcurtain.errors import UsageError
from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.policy.verdict import Verdict
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.messages import ProposedStep, StepKind


class JudgedStep(msgspec.Struct, frozen=True):
    """
    What the policy says of a step.

    :param step: what may be done: as proposed, or as a hook changed it.
    :param by: who decided: ``policy``, or the name of a hook.
    :param creates: real paths that it would create; ``None`` if that is not known.
    """

    step: ProposedStep
    verdict: Verdict
    risk: Risk
    by: str = "policy"
    creates: tuple[str, ...] | None = None


class StepRun(msgspec.Struct, frozen=True):
    """
    How a step is done.

    :param directory: where it was judged.
    :param seconds: how long it may take.
    :param show: gets what it writes meanwhile.
    :param ask: asks a person about a recorded call that it leads to; returns who approved it, and raises
        :class:`~ironcurtain.mcp_proxy.refusals.CallRefused`.
    """

    directory: str
    seconds: float
    show: Callable[[bytes], None]
    ask: Callable[[OpenCall, JudgedStep], Awaitable[str]]


class Hand(Protocol):
    """
    Does steps of one kind. It judges them before; :class:`~ironcurtain.shell.plan.PlanRun` asks and records between.
    """

    @property
    def kind(self) -> StepKind:
        """Of its steps."""

    @property
    def admission(self) -> CallAdmission:
        """Records its steps, and asks about them."""

    def specs(self) -> Sequence[ToolSpec]:
        """:returns: the tools that the model is offered for such steps."""

    def proposed(self, number: int, use: ToolUse, directory: str) -> ProposedStep:
        """
        :param use: of one of its tools.
        :param directory: where the shell is.
        :returns: the step, not judged yet.
        :raises UsageError: the model's arguments make none. The message is for the model.
        """

    def names(self, step: ProposedStep) -> tuple[str, str]:
        """:returns: by which server and tool it stands in records and questions."""

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what it says now, hooks left out."""

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what it says when the step's turn has come."""

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how it ended.

        :returns: whether the plan may go on.
        """

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        """:returns: the definition under which an approval of such a step can be kept."""

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        """
        Do what was judged, and record how it ended.

        :param call: its record, which this ends.
        """

    def interrupt(self) -> None:
        """End what runs."""

    def kill(self) -> None:
        """End what runs by force."""


class Hands:
    """
    All that the model of a session can do.

    :param hands: the first one has commands.
    """

    def __init__(self, hands: Sequence[Hand]) -> None:
        self._hands = {hand.kind: hand for hand in hands}

    def of(self, step: ProposedStep) -> Hand:
        """:returns: what does a step."""
        return self._hands[step.kind]

    def specs(self) -> tuple[ToolSpec, ...]:
        """:returns: the tools for the model, those for commands first."""
        return tuple(spec for hand in self._hands.values() for spec in hand.specs())

    def proposed(self, number: int, use: ToolUse, directory: str) -> ProposedStep:
        """
        :param directory: where the shell is.
        :returns: what the model asks for, as a step that is not judged yet.
        :raises UsageError: there is no such tool, or its arguments are wrong. The message is for the model.
        """
        for hand in self._hands.values():
            if any(spec.name == use.name for spec in hand.specs()):
                return hand.proposed(number, use, directory)
        raise UsageError(f"there is no tool {use.name}")

    def interrupt(self) -> None:
        """End what runs."""
        for hand in self._hands.values():
            hand.interrupt()

    def kill(self) -> None:
        """End what runs by force."""
        for hand in self._hands.values():
            hand.kill()


def text_argument(use: ToolUse, name: str) -> str:
    """
    :returns: an argument of a use.
    :raises UsageError: it is not there, or no text.
    """
    value = use.input.get(name)
    if not isinstance(value, str):
        raise UsageError(f"{use.name} needs the argument {name}, as text")
    return value


def purpose_of(use: ToolUse) -> str:
    """:returns: the model's words about a use; empty without any."""
    purpose = use.input.get("purpose")
    return purpose if isinstance(purpose, str) else ""
