"""The question that the engine is asked, its answer, and the steps that led to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class Step:
    """
    One thing that the engine looked at.

    :param check: what was looked at; a rule's name if ``rule`` is set.
    :param outcome: ``pass``, ``allow``, ``escalate`` or ``deny``; for a rule also ``no``, and ``detail`` says why.
    :param role: the role that was being judged, empty for what concerns the whole call.
    :param rule: whether this is about a rule of the policy.
    """

    check: str
    outcome: str
    detail: str = ""
    role: str = ""
    rule: bool = False


@dataclass(slots=True)
class Trace:
    """The steps of one evaluation, in order. The engine fills it while it judges."""

    steps: list[Step] = field(default_factory=list)

    def add(self, check: str, outcome: str, detail: str = "", *, role: str = "", rule: bool = False) -> None:
        """Note one step."""
        self.steps.append(Step(check, outcome, detail, role, rule))


class Decision(StrEnum):
    """What the policy says about a call, before any person is asked."""

    ALLOW = "allow"
    ESCALATE = "escalate"
    DENY = "deny"


SEVERITY = {Decision.ALLOW: 0, Decision.ESCALATE: 1, Decision.DENY: 2}
"""The severest decision about any part of a call is the decision about the whole."""


class ToolCall(msgspec.Struct, frozen=True):
    """
    One call of one tool.

    :param tool: the server's own name of the tool, without a prefix.
    :param arguments: as the agent wrote them.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any]


class Resource(msgspec.Struct, frozen=True):
    """
    Something that a call would touch.

    :param role: what the tool does with it.
    :param argument: the argument that named it.
    :param value: what was judged: a real path, an address, or the text as written.
    :param written: the path that was asked for, where a link leads from it to another one; only if a person decides.
    """

    role: str
    argument: str
    value: str
    written: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """
    The engine's answer.

    :param rule: the name of the rule that decided; ``structural-*`` for what no rule can change.
    :param reason: for people, in one sentence.
    :param arguments: what to forward, at once or after approval: as written, but with the real paths that were judged.
    :param resources: everything that was judged, for display.
    :param asking: every rule that asks for a person, where others than ``rule`` do too.
    """

    decision: Decision
    rule: str
    reason: str
    arguments: dict[str, Any]
    resources: tuple[Resource, ...] = ()
    asking: tuple[str, ...] = ()
