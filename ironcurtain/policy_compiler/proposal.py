"""What a model proposes: parsed strictly, by the schema of policies. Anything else is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ironcurtain.errors import ConfigurationError, IronCurtainError
from ironcurtain.home.parsing import parse_json
from ironcurtain.home.structured import convert
from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.check import check, is_broad
from ironcurtain.policy.paths import UnresolvablePath
from ironcurtain.policy.roles import RESOURCE_ROLES
from ironcurtain.policy.rules import Policy, Rule
from ironcurtain.policy.scenarios import Scenario
from ironcurtain.text.display import has_hidden_text, one_line

RULES_LIMIT = 200
"""Maximum number of rules, and of scenarios, in a proposal."""

PREFIX = "constitution-"
"""The beginning of the names of all compiled rules."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_REFUSED = frozenset(("allows-server", "broad-path", "unknown-server", "unknown-tool", "wildcard"))


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


class Directories(msgspec.Struct, frozen=True):
    """
    The directories of the person for whom rules are proposed.

    :param home: real path of the home directory; empty if it is not known.
    :param real: returns the real path of a directory that a rule names.
    """

    home: str = ""
    real: Callable[[str], str] = str


def parse_proposal(
    text: str,
    constitution: Sequence[str],
    annotations: Annotations,
    server: str = "",
    directories: Directories = Directories(),
) -> Proposal:
    """
    :param text: the model's answer: one JSON object, alone or in a fenced block.
    :param constitution: the sentences.
    :param annotations: the tools that rules may name.
    :param server: the one that rules apply to; empty for rules that apply to all, which may not allow anything.
    :returns: the proposal, in which the name of each rule is that of :func:`rule_name`, and it quotes its sentence.
    :raises ProposalRefused: it is not valid, or a rule allows more than a sentence can mean: everything, a whole
        server or tool, a whole home directory, or what a person has to decide.
    """
    try:
        answer = json_answer(text)
        proposal: Proposal = convert("answer", answer, Proposal)
    except ConfigurationError as e:
        raise ProposalRefused(f"the answer is not valid: {e}") from None
    if (hidden := hidden_text(answer)) is not None:
        raise ProposalRefused(f"it has invisible characters: {one_line(hidden, 100)}")
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
    for rule in proposal.policy_rules():
        if problem := _widens(rule, annotations, directories):
            raise ProposalRefused(f"rule {rule.name}: {problem}")
    return proposal


def hidden_text(answer: Any) -> str | None:
    """:returns: the first text with invisible characters in parsed JSON, ``None`` if there is none."""
    return next((text for text in _texts(answer) if has_hidden_text(text)), None)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _widens(rule: Rule, annotations: Annotations, directories: Directories) -> str:
    """:returns: why a rule permits what nobody has bounded; empty if it does not."""
    conditions = rule.conditions
    if rule.auto:
        return "only a person can let the auto-approver decide: leave out auto"
    if rule.then != "allow":
        return ""
    if conditions.paths is not None:
        try:
            bounded = not is_broad(directories.real(conditions.paths.directory), directories.home)
        except UnresolvablePath as e:
            return f"{conditions.paths.within} cannot be resolved: {e}"
        return "" if bounded else f"it allows everything within {conditions.paths.within}: name a directory in the home"
    if conditions.domains is not None or conditions.lists:
        return ""
    if not conditions.tool:
        return "it allows a role whatever the tool and the value: name tools, and paths, domains or lists"
    for (server, tool), annotation in annotations.table().items():
        concerned = tool in conditions.tool and server in (conditions.server or (server,))
        if concerned and (judged := annotation.roles & RESOURCE_ROLES):
            roles = ", ".join(sorted(judged))
            return f"it allows {tool} whatever its {roles} is: name paths, domains or lists"
    return ""


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
