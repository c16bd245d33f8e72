"""The engine's input and output: a call, its verdict, and the steps that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any

import msgspec


class Step(msgspec.Struct, frozen=True):
    """
    One step of an evaluation.

    :param check: the name of the check, or of the rule if ``rule`` is set.
    :param outcome: ``pass``, ``allow``, ``escalate`` or ``deny``. A rule that does not match has ``no``, and ``detail``
        gives the reason.
    :param role: the role that was judged, empty for a check of the whole call.
    :param rule: whether the step is a rule of the policy.
    """

    check: str
    outcome: str
    detail: str = ""
    role: str = ""
    rule: bool = False


class Trace(msgspec.Struct):
    """The steps of one evaluation, in order. The engine adds them while it judges."""

    steps: list[Step] = msgspec.field(default_factory=list)

    def add(self, check: str, outcome: str, detail: str = "", *, role: str = "", rule: bool = False) -> None:
        """Add a step."""
        self.steps.append(Step(check, outcome, detail, role, rule))


class Automatic(IntEnum):
    """
    Whether an escalated call may be approved without a person, where the user's own words ask for it: never, unless
    it is hard to undo, or always.
    """

    NEVER = 0
    REVERSIBLE = 1
    ALWAYS = 2


class Decision(StrEnum):
    """The decision of the policy about a call, before a person is asked."""

    ALLOW = "allow"
    ESCALATE = "escalate"
    DENY = "deny"


class Reversal(StrEnum):
    """Whether what a call does can be undone, as far as the roles of its arguments tell."""

    SNAPSHOT = "snapshot"
    """It changes files in the workspace only, which a snapshot has."""
    READS = "reads"
    """It changes nothing, and the agent knows what it has read."""
    NO_SNAPSHOT = "no-snapshot"
    """It changes files in the workspace, of which there is no snapshot."""
    OUTSIDE = "outside"
    """It changes files outside the workspace."""
    REMOTE = "remote"
    """It leaves this machine."""
    DESKTOP = "desktop"
    """It operates an application."""
    UNKNOWN = "unknown"


SEVERITY = {Decision.ALLOW: 0, Decision.ESCALATE: 1, Decision.DENY: 2}
"""The most severe decision about any part of a call is the decision about the call."""


class ToolCall(msgspec.Struct, frozen=True):
    """
    A call of a tool.

    :param tool: the server's name of the tool, without a prefix.
    :param arguments: as the agent wrote them.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any]


class Resource(msgspec.Struct, frozen=True):
    """
    A resource that a call would use.

    :param role: what the tool does with it.
    :param argument: the argument that named it.
    :param value: what was judged: a real path, an address, or the text as written.
    :param written: the path as written, if it leads through a symbolic link and a person decides; otherwise empty.
    """

    role: str
    argument: str
    value: str
    written: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """
    The engine's answer.

    :param rule: the name of the rule that decided; ``structural-*`` for an invariant.
    :param reason: one sentence for people.
    :param arguments: the arguments to forward, now or after approval: as written, but with the real paths that were
        judged.
    :param resources: everything that was judged, for display.
    :param asking: the names of all rules that escalate, ``rule`` included.
    :param reversal: whether it can be undone, provided that there is a snapshot.
    :param approvals: number of different people who must approve, if it is escalated.
    :param automatic: whether it may be approved without a person, if it is escalated.
    """

    decision: Decision
    rule: str
    reason: str
    arguments: dict[str, Any]
    resources: tuple[Resource, ...] = ()
    asking: tuple[str, ...] = ()
    reversal: Reversal = Reversal.UNKNOWN
    approvals: int = 1
    automatic: Automatic = Automatic.NEVER
