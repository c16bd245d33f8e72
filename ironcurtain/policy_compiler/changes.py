"""The changes that a proposal makes to the present policy, and the policy file with those that a person accepted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.parsing import parse_toml
from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.rules import Rule
from ironcurtain.policy.written import annotation_toml, rule_toml
from ironcurtain.policy_compiler.proposal import PREFIX, server_of

_TABLE = re.compile(r"^(?=\[)", re.MULTILINE)
_RULE = re.compile(r"\[\[\s*rules\s*\]\]")
_AFTERWARDS = re.compile(r"(?:^[ \t]*(?:#.*)?\n)*\Z", re.MULTILINE)
"""Blank lines and comments at the end of a table: they can belong to what follows."""


class RuleChange(msgspec.Struct, frozen=True):
    """
    A difference between the proposal and the present policy.

    :param new: the proposed rule; ``None`` if the constitution does not lead to the present one any more.
    :param old: the present rule of this name; ``None`` if there is none.
    """

    new: Rule | None
    old: Rule | None

    @property
    def name(self) -> str:
        """The rule's name."""
        rule = self.new or self.old
        assert rule is not None
        return rule.name


def written_by_hand(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """:returns: the rules that are no compiled ones."""
    return tuple(rule for rule in rules if not rule.name.startswith(PREFIX))


def leading_denials(decisions: Iterable[object]) -> int:
    """
    :param decisions: of the rules written by hand, in order.
    :returns: the number of denials with which they begin. No compiled rule comes before these.
    """
    return len(list(takewhile(lambda decision: decision == "deny", decisions)))


def in_force(compiled: Sequence[Rule], by_hand: Sequence[Rule]) -> tuple[Rule, ...]:
    """:returns: compiled rules among those that a person wrote, in the order of the policy file."""
    first = leading_denials(rule.then for rule in by_hand)
    return (*by_hand[:first], *compiled, *by_hand[first:])


def changes(proposed: Sequence[Rule], present: Sequence[Rule], kept: Collection[str] = ()) -> list[RuleChange]:
    """
    :param proposed: those of a proposal.
    :param kept: the servers whose rules stay, since there is no proposal for them; empty for rules for all.
    :returns: what differs, proposed rules first.
    """
    old = {rule.name: rule for rule in present if rule.name.startswith(PREFIX)}
    new = {rule.name: rule for rule in proposed}
    differing = [RuleChange(rule, old.get(name)) for name, rule in new.items() if old.get(name) != rule]
    gone = (rule for name, rule in old.items() if name not in new and server_of(rule) not in kept)
    return [*differing, *(RuleChange(None, rule) for rule in gone)]


def placed(present: Sequence[Rule], proposed: Sequence[Rule], accepted: Sequence[RuleChange]) -> list[Rule]:
    """
    Order the compiled rules of a policy. Those that a person did not read keep their order, since it has effects.

    :param present: the rules of the policy.
    :param proposed: all rules of the proposal; an accepted new one goes after the one before it there.
    """
    by_name = {change.name: change for change in accepted}
    compiled = [rule for rule in present if rule.name.startswith(PREFIX)]
    after = (by_name[rule.name].new if rule.name in by_name else rule for rule in compiled)
    result = [rule for rule in after if rule is not None]
    for index, rule in enumerate(proposed):
        if rule.name not in by_name or by_name[rule.name].old is not None:
            continue
        names = [each.name for each in result]
        before = [names.index(each.name) for each in proposed[:index] if each.name in names]
        following = [names.index(each.name) for each in proposed[index + 1 :] if each.name in names]
        result.insert(max(before) + 1 if before else min(following, default=len(result)), rule)
    return result


def edited(source: str, text: str, compiled: Sequence[Rule], annotations: Annotations) -> str:
    """
    Change a policy file: replace its compiled rules, which stand after the denials with which it begins and before all
    other rules, and add annotations.

    :param source: the file's name, for messages.
    :param text: a ``policy.toml``.
    :param compiled: all compiled rules, in order.
    :param annotations: those of tools that have none yet.
    :raises ConfigurationError: the file has its rules or annotations in another form, so that they have to be changed
        by hand.
    """
    pieces = _TABLE.split(text)
    kept = [_comments(piece) if _is_compiled(source, piece) else piece for piece in pieces]
    at = next(
        (index for index, piece in enumerate(kept) if _RULE.match(piece) and not _denies(source, piece)), len(kept)
    )
    before, after = "".join(kept[:at]), "".join(kept[at:])
    new = [annotation_toml(server, tool) for (server, _), tool in annotations.table().items()]
    added = "".join(f"{piece}\n" for piece in (*new, *map(rule_toml, compiled)))
    result = before + ("" if not before or before.endswith("\n") else "\n") + added + after
    _check_edited(source, text, result, compiled, annotations)
    return result


def proposal_text(rules: Sequence[Rule], annotations: Annotations) -> str:
    """:returns: rules and annotations as a policy file."""
    tools = (annotation_toml(server, tool) for (server, _), tool in annotations.table().items())
    return "\n".join(["version = 1\n", *tools, *map(rule_toml, rules)])


def _check_edited(source: str, text: str, result: str, compiled: Sequence[Rule], annotations: Annotations) -> None:
    """:raises ConfigurationError: the new file has other rules or annotations than those meant."""
    by_hand = "add what was proposed by hand"
    old = parse_toml(source, text)
    try:
        new = parse_toml(source, result)
    except ConfigurationError as e:
        raise ConfigurationError(source, f"it cannot be changed, {by_hand}: {e.detail}") from None
    kept = [rule for rule in old.get("rules", []) if not str(rule.get("name")).startswith(PREFIX)]
    rules = new.get("rules", [])
    others = [rule for rule in rules if not str(rule.get("name")).startswith(PREFIX)]
    first = leading_denials(rule.get("then") for rule in others)
    if [rule.get("name") for rule in rules[first : first + len(compiled)]] != [rule.name for rule in compiled]:
        raise ConfigurationError(source, f"its rules are not written as [[rules]]: {by_hand}")
    tools = {(server, name) for server, each in new.get("tools", {}).items() for name in each}
    tools -= {(server, name) for server, each in old.get("tools", {}).items() for name in each}
    rest = [{**document, "rules": 0, "tools": 0} for document in (old, new)]
    if (
        others != kept
        or len(rules) != len(others) + len(compiled)
        or tools != set(annotations.table())
        or rest[0] != rest[1]
    ):
        raise ConfigurationError(source, f"its rules are not written as [[rules]]: {by_hand}")


def _comments(piece: str) -> str:
    found: str = _AFTERWARDS.findall(piece)[0]
    return found if found.strip() else ""


def _denies(source: str, piece: str) -> bool:
    return all(rule.get("then") == "deny" for rule in parse_toml(source, piece).get("rules", []))


def _is_compiled(source: str, piece: str) -> bool:
    found: Iterator[str] = (str(rule.get("name")) for rule in parse_toml(source, piece).get("rules", []))
    return bool(_RULE.match(piece)) and next(found, "").startswith(PREFIX)
