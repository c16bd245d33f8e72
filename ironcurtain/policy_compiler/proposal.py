"""What a model proposes: parsed strictly, by the schema of policies. Anything else is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError, IronCurtainError
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import convert
from ironcurtain.policy import Annotations, Policy
from ironcurtain.policy.check import check
from ironcurtain.policy.rules import Rule
from ironcurtain.policy.scenarios import Scenario

RULES_LIMIT = 200
"""Maximum number of rules, and of scenarios, in a proposal."""

PREFIX = "constitution-"
"""The beginning of the names of all compiled rules."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_REFUSED = frozenset(("allows-server", "broad-path", "unknown-server", "unknown-tool"))


class ProposalRefused(IronCurtainError):
    """The model's answer is not a proposal. The message says why, for the model."""


class ProposedRule(Struct, frozen=True, forbid_unknown_fields=True):
    """:param sentence: number of the sentence that it comes from, from 1."""

    sentence: int
    rule: Rule


class ProposedScenario(Struct, frozen=True, forbid_unknown_fields=True):
    """:param sentence: number of the sentence that demands the verdict, from 1."""

    sentence: int
    scenario: Scenario


class Proposal(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules and scenarios of a whole constitution, for one server or for all."""

    rules: tuple[ProposedRule, ...]
    scenarios: tuple[ProposedScenario, ...]

    def policy_rules(self) -> tuple[Rule, ...]:
        """:returns: the rules in order."""
        return tuple(each.rule for each in self.rules)


def json_answer(text: str) -> Any:
    """
    :param text: a model's answer: JSON, alone or in a fenced block.
    :raises ConfigurationError: it is something else.
    """
    found = _FENCED.findall(text)
    return parse_json("answer", (found[-1] if found else text).encode("utf-8", "backslashreplace"))


def parse_proposal(text: str, constitution: Sequence[str], annotations: Annotations, server: str = "") -> Proposal:
    """
    :param text: the model's answer: one JSON object, alone or in a fenced block.
    :param constitution: the sentences.
    :param annotations: the tools that rules may name.
    :param server: the one that rules apply to; empty for rules that apply to all, which may not allow anything.
    :returns: the proposal, in which the name of each rule is that of :func:`rule_name`, and it quotes its sentence.
    :raises ProposalRefused: it is not valid, or a rule allows more than a sentence can mean: everything, a whole
        server, or a whole home directory.
    """
    try:
        proposal: Proposal = convert("answer", json_answer(text), Proposal)
    except ConfigurationError as e:
        raise ProposalRefused(f"the answer is not valid: {e}") from None
    if max(len(proposal.rules), len(proposal.scenarios)) > RULES_LIMIT:
        raise ProposalRefused(f"there are more than {RULES_LIMIT} rules or scenarios")
    numbers = [*(each.sentence for each in proposal.rules), *(each.sentence for each in proposal.scenarios)]
    for number in numbers:
        if not 1 <= number <= len(constitution):
            raise ProposalRefused(f"there is no sentence {number}")
    if len({each.scenario.name for each in proposal.scenarios}) < len(proposal.scenarios):
        raise ProposalRefused("two scenarios have the same name")
    rules = tuple(
        ProposedRule(each.sentence, replace(_scoped(each.rule, server), principle=constitution[each.sentence - 1]))
        for each in proposal.rules
    )
    # The expected rule is left out of scenarios: only decisions matter.
    scenarios = tuple(ProposedScenario(each.sentence, replace(each.scenario, rule="")) for each in proposal.scenarios)
    for scenario in scenarios:
        if server and scenario.scenario.server != server:
            raise ProposalRefused(f"the scenario {scenario.scenario.name} is about another server than {server}")
    proposal = Proposal(rules, scenarios)
    for finding in check(Policy(proposal.policy_rules()), annotations):
        if finding.severity == "error" or finding.code in _REFUSED:
            raise ProposalRefused(f"rule {finding.rule}: {finding.message}")
    return proposal


def rule_name(name: str, server: str) -> str:
    """
    :param name: by which the model calls a rule.
    :param server: empty for a rule that applies to all servers.
    :returns: the rule's name in the policy, which :func:`server_of` can read.
    """
    own = f"{server}." if server else ""
    return f"{PREFIX}{own}{name.removeprefix(PREFIX).removeprefix(own).replace('.', '-')}"


def server_of(rule: Rule) -> str:
    """:returns: the server of a compiled rule; empty if it applies to all."""
    return rule.name.removeprefix(PREFIX).rpartition(".")[0]


def _scoped(rule: Rule, server: str) -> Rule:
    """:raises ProposalRefused: the rule applies to more than the server, or to all and allows something."""
    conditions = rule.conditions
    if server:
        if conditions.server not in (None, (server,)):
            raise ProposalRefused(f"rule {rule.name}: it can only apply to the server {server}")
        conditions = replace(conditions, server=(server,))
    elif conditions.server is not None or conditions.tool is not None:
        raise ProposalRefused(f"rule {rule.name}: it must name no server and no tool, since it applies to all")
    elif rule.then == "allow":
        raise ProposalRefused(f"rule {rule.name}: a rule for all servers may only escalate or deny")
    return replace(rule, name=rule_name(rule.name, server), conditions=conditions)
