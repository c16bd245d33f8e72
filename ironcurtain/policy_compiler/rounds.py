"""The rounds between the model and the engine: answers in, messages or a result out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.rules import Rule
from ironcurtain.policy.scenarios import ScenarioResult, judge_scenarios
from ironcurtain.policy_compiler import prompt
from ironcurtain.policy_compiler.proposal import Directories, Proposal, ProposalRefused, parse_proposal

ROUNDS = 4
"""Maximum number of answers of the model: the first, and three corrections."""


class Say(msgspec.Struct, frozen=True):
    """The next message to the model."""

    text: str


class Compiled(msgspec.Struct, frozen=True):
    """The result: every scenario gets the verdict that it demands, and every rule is tried by one of its sentence."""

    proposal: Proposal


class GaveUp(msgspec.Struct, frozen=True):
    """The model gave no valid proposal; the reason is that of its last answer."""

    why: str


@dataclass(slots=True)
class Rounds:
    """
    :param constitution: the sentences.
    :param annotations: the tools that rules may name.
    :param engine_with: returns the engine with proposed rules among those of the policy, over no files of this
        machine.
    :param server: the one that the rules apply to; empty for all.
    :param directories: those of the person.
    """

    constitution: Sequence[str]
    annotations: Annotations
    engine_with: Callable[[tuple[Rule, ...]], PolicyEngine]
    server: str = ""
    directories: Directories = field(default_factory=Directories)
    _answers: int = field(default=0, init=False)

    def begin(self) -> Say:
        """:returns: the first message."""
        return Say(prompt.request(self.constitution, self.annotations, self.server))

    def answered(self, text: str) -> Say | Compiled | GaveUp:
        """
        Take an answer of the model.

        :returns: what to do next. A proposal counts as a whole or not at all, since rules that are left out could be
            those that deny.
        """
        self._answers += 1
        try:
            proposal = parse_proposal(text, self.constitution, self.annotations, self.server, self.directories)
        except ProposalRefused as e:
            return self._next(prompt.refused(str(e)), str(e))
        engine = self.engine_with(proposal.policy_rules())
        results = judge_scenarios(engine, [each.scenario for each in proposal.scenarios])
        if failed := [result for result in results if not result.passed]:
            return self._next(prompt.mismatches(failed), f"scenarios fail: {prompt.mismatch(failed[0])}")
        if untried := _untried(proposal, results):
            why = f"no scenario of its sentence tries the rule {untried[0].name}"
            return self._next(prompt.untried(rule.name for rule in untried), why)
        return Compiled(proposal)

    def _next(self, text: str, why: str) -> Say | GaveUp:
        return Say(text) if self._answers < ROUNDS else GaveUp(why)


def _untried(proposal: Proposal, results: Sequence[ScenarioResult]) -> list[Rule]:
    """:returns: the rules that hold in no scenario of their sentence. What needs a history only needs a scenario."""
    held: dict[int, set[str]] = {}
    for each, result in zip(proposal.scenarios, results, strict=True):
        held.setdefault(each.sentence, set()).update(result.held)
    return [
        each.rule
        for each in proposal.rules
        if each.sentence not in held
        or (each.rule.name not in held[each.sentence] and not each.rule.conditions.has_memory)
    ]
