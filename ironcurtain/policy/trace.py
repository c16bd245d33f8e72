"""Collect how a verdict came about."""

from __future__ import annotations

from dataclasses import dataclass, field


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
