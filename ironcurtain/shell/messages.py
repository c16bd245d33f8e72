"""
What the agent of a shell and its front ends say to each other.

The agent mode of a terminal and programs at the other end of a pipe get the same messages. In pipe mode each is one
line of JSON (NDJSON); ``docs/reference/shell.rst`` has the schema.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec

from ironcurtain.command_rules.risk import Risk
from ironcurtain.policy.verdict import Reversal


class StepOutcome(StrEnum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    """Its command ended with a status other than 0."""
    DENIED = "denied"
    SKIPPED = "skipped"
    INTERRUPTED = "interrupted"
    TIMED_OUT = "timed-out"
    NOT_RUN = "not-run"
    """The plan ended before its turn came."""


class StepKind(StrEnum):
    """What a step does."""

    COMMAND = "command"
    """Types a command into the shell."""
    EDIT = "edit"
    """Writes a file."""
    TOOL = "tool"
    """Calls a tool of an MCP server."""
    AGENT = "agent"
    """Starts an agent below this one."""


class ProposedStep(msgspec.Struct, frozen=True, kw_only=True):
    """
    One step of a plan, as the policy judges it before anything runs. It is judged again when its turn comes.

    :param number: from 1, in the plan.
    :param command: as the model wrote it or the user changed it. Of any other ``kind``, a line that names it.
    :param arguments: what such a step does exactly; empty for a command.
    :param diff: how it changes a file, as a unified diff.
    :param purpose: the model's words.
    :param decision: ``allow``, ``escalate`` or ``deny``.
    :param rule: what decided, with its ``reason``.
    :param undo: whether it can be undone: :class:`~ironcurtain.policy.verdict.Reversal`; in a plan, provided that the
        snapshot before its first step can be taken.
    :param where: files that it changes and addresses that it uses, as far as its text shows them.
    """

    number: int
    command: str
    purpose: str = ""
    risk: Risk = Risk.UNKNOWN
    decision: str = "escalate"
    rule: str = ""
    reason: str = ""
    undo: str = Reversal.UNKNOWN.value
    kind: StepKind = StepKind.COMMAND
    arguments: dict[str, Any] = {}
    diff: str = ""
    where: tuple[str, ...] = ()

    @property
    def identity(self) -> Hashable:
        """What is approved with it: a step with another one does something else."""
        return self.kind, self.command, msgspec.json.encode(self.arguments, order="deterministic"), self.diff


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    pass


class _Action(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True):
    pass


class InstructionAccepted(_Message, frozen=True, tag="instruction"):
    """The agent begins to work on an instruction."""

    text: str


class ModelText(_Message, frozen=True, tag="text"):
    """The next piece of the model's words."""

    text: str


class StepForming(_Message, frozen=True, tag="step"):
    """A step of a plan that is still being written."""

    plan_id: str
    step: ProposedStep


class PlanProposed(_Message, frozen=True, tag="plan"):
    """
    A whole plan. A later one with the same id replaces what has not run yet.

    :param confirm: whether it waits for a decision on the plan (``approval`` without a step) before its first step.
    """

    plan_id: str
    steps: tuple[ProposedStep, ...]
    confirm: bool


class ApprovalRequested(_Message, frozen=True, tag="approval_request"):
    """
    A step waits for a decision, here or at any console.

    :param number: of the escalation.
    :param digest: of exactly what would run; an ``approval`` may repeat it, and is refused if it has changed.
    :param scope: what an approval for the session would cover; empty if it can only be for this once.
    :param category: what an approval of its category would cover; empty if it is in none.
    """

    plan_id: str
    step: ProposedStep
    number: int
    digest: str
    scope: str = ""
    category: str = ""


class StepDecided(_Message, frozen=True, tag="decision"):
    """
    A step may run, or not.

    :param by: who decided: the policy, a hook, or a person.
    :param code: why not, for programs, such as ``denied-by-rule``, ``denied-by-person``, ``nobody-to-ask``.
    """

    plan_id: str
    step: int
    allowed: bool
    by: str
    reason: str = ""
    code: str = ""


class StepStarted(_Message, frozen=True, tag="step_started"):
    """The command was given to the shell, or what any other ``kind`` of steps does has begun."""

    plan_id: str
    step: int
    command: str
    kind: StepKind = StepKind.COMMAND


class StepOutput(_Message, frozen=True, tag="output"):
    """A piece of the command's output, without escape sequences."""

    plan_id: str
    step: int
    text: str


class StepCompleted(_Message, frozen=True, tag="step_complete"):
    """
    A step is over.

    :param exit_code: ``None`` if the command did not run or has not ended.
    :param output: what is given to the model, at most ``shell.output_bytes``.
    :param truncated: whether output is missing in it.
    """

    plan_id: str
    step: int
    outcome: StepOutcome
    exit_code: int | None = None
    output: str = ""
    truncated: bool = False
    duration_ms: int = 0
    reason: str = ""


class Notice(_Message, frozen=True, tag="notice"):
    """Something the user should know: another backend answers, a limit is reached, integration is lost."""

    text: str


class BudgetReached(_Message, frozen=True, tag="budget_reached"):
    """
    The tokens of the session are used up: the agent waits for ``more_tokens``.

    :param used: tokens so far.
    :param more: how many more an approval allows.
    :param setting: the setting that has the limit.
    """

    used: int
    more: int
    setting: str


class InstructionDone(_Message, frozen=True, tag="done"):
    """
    The agent is done with an instruction.

    :param text: the model's last words.
    :param error: why there is no answer; empty if there is one.
    :param usage_known: whether the model, and agents below, said how many tokens they used; if not, some are missing.
    :param below_in: those of ``tokens_in`` that agents below used, as ``below_out`` of ``tokens_out``.
    :param counted: for how many tokens of a limit they count: those that a provider had cached count for less.
    """

    text: str = ""
    error: str = ""
    usage_known: bool = True
    tokens_in: int = 0
    tokens_out: int = 0
    below_in: int = 0
    below_out: int = 0
    counted: float = 0.0
    cost: float | None = None
    model: str = ""


Message = (
    InstructionAccepted
    | ModelText
    | StepForming
    | PlanProposed
    | ApprovalRequested
    | StepDecided
    | StepStarted
    | StepOutput
    | StepCompleted
    | Notice
    | BudgetReached
    | InstructionDone
)
"""What front ends are told."""


class Approval(_Action, frozen=True, tag="approval"):
    """
    A decision on a step that waits, or without ``step`` on the plan.

    :param decision: ``allow``; ``policy``: the steps of a plan that the policy allows, and each other one as it asks
        when its turn comes; ``allow_undoable``: the steps of a plan that can be undone, and each other step when its
        turn comes; ``allow_session``: also what the request's ``scope`` says, until the session ends;
        ``allow_category``: also what its ``category`` says; ``step``: approve each step when its turn comes (only for a
        plan); ``skip``: leave this step out; ``deny``: end the plan.
    :param digest: of the request; if given, it must match.
    :param reason: why it is denied, for the model and for people.
    """

    plan_id: str
    decision: Literal["allow", "allow_undoable", "allow_session", "allow_category", "policy", "step", "skip", "deny"]
    step: int | None = None
    digest: str | None = None
    reason: str = ""


class Edit(_Action, frozen=True, tag="edit"):
    """Another command for a step that has not run, and is a command; it is judged afresh."""

    plan_id: str
    step: int
    command: str


class Note(_Action, frozen=True, tag="note"):
    """Tell the model something: it revises the steps that have not run, or is told with its next request."""

    text: str


class Steer(_Action, frozen=True, tag="steer"):
    """The earlier name of a ``note``."""

    plan_id: str
    context: str


class Instruct(_Action, frozen=True, tag="instruction"):
    """Another instruction; only while the agent has none."""

    text: str


class MoreTokens(_Action, frozen=True, tag="more_tokens"):
    """Whether the session may use more tokens than its setting says."""

    allow: bool


class Interrupt(_Action, frozen=True, tag="interrupt"):
    """As Ctrl-C: cancel the request or the plan, or interrupt the command that runs."""


class Kill(_Action, frozen=True, tag="kill"):
    """As Ctrl-C twice: end the whole operation at once, with SIGKILL for the command that runs."""


class Alive(_Action, frozen=True, tag="alive"):
    """
    The program at the other end is there. Once it has said so, it has to again; else the connection counts as lost, and
    all ends.

    :param seconds: within which it says so again.
    """

    seconds: Annotated[float, msgspec.Meta(gt=0, le=86400)]


Action = Approval | Edit | Note | Steer | Instruct | MoreTokens | Interrupt | Kill | Alive
"""What front ends may say."""
