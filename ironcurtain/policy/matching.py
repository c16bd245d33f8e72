"""Rules made ready for many calls, and whether one holds for the values of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironcurtain.policy.lists import DomainPatterns, DynamicList, Members, expand
from ironcurtain.policy.paths import Root
from ironcurtain.policy.rules import Conditions, Rule
from ironcurtain.policy.targets import Target
from ironcurtain.policy.verdict import Decision


@dataclass(slots=True)
class Value:
    """
    One value of an argument that is judged.

    :param argument: the argument's name.
    :param text: as judged, for people.
    :param path: the real path, if a role of the argument is one of paths.
    :param written: the path as the call has it, if it has one.
    :param targets: where it leads, if a role of the argument is one of addresses.
    :param readable: ``False`` for what is no text, which no list has.
    """

    argument: str
    text: str
    path: str = ""
    written: str = ""
    targets: tuple[Target, ...] = ()
    readable: bool = True


Values = Mapping[str, Sequence[Value]]
"""The values of a call by role."""


@dataclass(frozen=True, slots=True)
class ReadyList:
    """A list condition with its lists put in."""

    roles: tuple[str, ...]
    members: Members

    def holds(self, values: Values, role: str) -> bool:
        """:param role: the role that is judged, empty if the tool has none; its own values count if it is named."""
        concerned = (role,) if role in self.roles else self.roles
        found = [value for each in concerned for value in values.get(each, ())]
        return bool(found) and all(self._has(value) for value in found)

    def _has(self, value: Value) -> bool:
        if value.targets:
            return all(map(self.members.match, value.targets))
        return value.readable and value.text in self.members


@dataclass(frozen=True, slots=True)
class ReadyRule:
    """
    A rule with its lists put in and its directory resolved.

    :param decision: what it decides.
    :param within: the directory of its condition on paths.
    :param domains: the patterns of its condition on addresses.
    """

    rule: Rule
    decision: Decision
    within: Root | None
    domains: DomainPatterns | None
    lists: tuple[ReadyList, ...]

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def fails(self, values: Values, role: str) -> str:
        """
        Check everything but the paths.

        :param role: the role that is judged, empty if the tool has none.
        :returns: why the rule does not hold; empty if it does.
        """
        own = values.get(role, ())
        if role == "git-remote-url" and own and self.decision is Decision.ALLOW and self.rule.conditions.names_no_role:
            return "it allows the tool but says nothing about remotes, and this call has one"
        if self.domains is not None and not (own and all(self._covers(value) for value in own)):
            return "not every address has a host that it lists"
        if not all(condition.holds(values, role) for condition in self.lists):
            return "not every value is on its lists"
        return ""

    def _covers(self, value: Value) -> bool:
        assert self.domains is not None
        if value.targets:
            return all(map(self.domains.match, value.targets))
        return self.domains.match_host(value.text)


def ready(rule: Rule, within: Root | None, lists: Mapping[str, DynamicList]) -> ReadyRule:
    """
    Prepare one rule.

    :param within: the real path of its directory, if it has a condition on paths.
    :param lists: by name.
    """
    conditions = rule.conditions
    domains = None if conditions.domains is None else DomainPatterns(expand(conditions.domains.allowed, lists))
    members = (
        ReadyList(condition.roles, Members(expand(condition.allowed, lists), condition.match_type))
        for condition in conditions.lists
    )
    return ReadyRule(rule, Decision(rule.then), within, domains, tuple(members))


def irrelevance(conditions: Conditions, server: str, tool: str, role: str, roles: frozenset[str]) -> str:
    """
    Find out whether a rule can ever concern a role of a tool.

    :param role: the role that is judged, empty if the tool has none that is judged by itself.
    :param roles: every role of the tool's arguments.
    :returns: why not; empty if it can.
    """
    if conditions.server is not None and server not in conditions.server:
        return "it is for other servers"
    if conditions.tool is not None and tool not in conditions.tool:
        return "it is for other tools"
    if conditions.roles is not None and roles.isdisjoint(conditions.roles):
        return "it is for other roles"
    if not role:
        return "it is for paths or addresses" if conditions.paths or conditions.domains else ""
    return "" if conditions.names(role) else "it is for other roles"
