"""The rounds between the model and the engine: answers in, messages or a result out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ironcurtain.policy import Annotations, PolicyEngine
from ironcurtain.policy.rules import Rule
from ironcurtain.policy.scenarios import ScenarioResult, judge_scenarios
from ironcurtain.policy_compiler import prompt
from ironcurtain.policy_compiler.proposal import Proposal, ProposalRefused, parse_proposal

ROUNDS = 4
"""Maximum number of answers of the model: the first, and three corrections."""


@dataclass(frozen=True, slots=True)
class Say:
    """The next message to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """
    The result.

    :param failed: the scenarios that still do not get the expected verdict.
    """

    proposal: Proposal
    failed: tuple[ScenarioResult, ...] = ()


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The model gave no valid proposal; the reason is that of its last answer."""

    why: str


@dataclass(slots=True)
class Rounds:
    """
    :param constitution: the sentences.
    :param annotations: the tools that rules may name.
    :param engine_with: returns the engine with proposed rules before those of the policy, over no files of this
        machine.
    :param server: the one that the rules apply to; empty for all.
    """

    constitution: Sequence[str]
    annotations: Annotations
    engine_with: Callable[[tuple[Rule, ...]], PolicyEngine]
    server: str = ""
    _answers: int = field(default=0, init=False)
    _best: Compiled | None = field(default=None, init=False)

    def begin(self) -> Say:
        """:returns: the first message."""
        return Say(prompt.request(self.constitution, self.annotations, self.server))

    def answered(self, text: str) -> Say | Compiled | GaveUp:
        """
        Take an answer of the model.

        :returns: what to do next. When the rounds are used up, the proposal with the fewest failed scenarios.
        """
        self._answers += 1
        try:
            proposal = parse_proposal(text, self.constitution, self.annotations, self.server)
        except ProposalRefused as e:
            return self._next(prompt.refused(str(e)), str(e))
        engine = self.engine_with(proposal.policy_rules())
        results = judge_scenarios(engine, [each.scenario for each in proposal.scenarios])
        compiled = Compiled(proposal, tuple(result for result in results if not result.passed))
        if not compiled.failed:
            return compiled
        if self._best is None or len(compiled.failed) < len(self._best.failed):
            self._best = compiled
        return self._next(prompt.mismatches(compiled.failed), "")

    def _next(self, text: str, why: str) -> Say | Compiled | GaveUp:
        return Say(text) if self._answers < ROUNDS else self._best or GaveUp(why)
