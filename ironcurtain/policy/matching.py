"""Rules prepared for evaluation, and the test whether one matches the values of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ironcurtain.policy.history import CallHistory
from ironcurtain.policy.lists import DomainPatterns, DynamicList, Members, expand
from ironcurtain.policy.paths import Root
from ironcurtain.policy.rules import Conditions, Rule
from ironcurtain.policy.targets import Target
from ironcurtain.policy.verdict import Decision


@dataclass(slots=True)
class Value:
    """
    One value of an argument.

    :param argument: the argument's name.
    :param text: the value as judged, for messages.
    :param path: the real path, if the argument has a path role.
    :param written: the path as written in the call, if the argument has a path role.
    :param targets: the targets of the address, if the argument has an address role.
    :param readable: ``False`` for a value that is not text, which no list matches.
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
class PreparedList:
    """A list condition with its lists expanded."""

    roles: tuple[str, ...]
    members: Members

    def holds(self, values: Values, role: str) -> bool:
        """
        Whether all values of the condition's roles are on the list.

        :param role: the role that is judged, empty if the tool has none. If the condition names it, only its values
            are compared.
        """
        concerned = (role,) if role in self.roles else self.roles
        found = [value for each in concerned for value in values.get(each, ())]
        return bool(found) and all(self._has(value) for value in found)

    def _has(self, value: Value) -> bool:
        if value.targets:
            return all(map(self.members.match, value.targets))
        return value.readable and value.text in self.members


@dataclass(frozen=True, slots=True)
class PreparedRule:
    """
    A rule with its lists expanded and its directory resolved.

    :param decision: the decision of the rule.
    :param within: the directory of its ``paths`` condition.
    :param domains: the patterns of its ``domains`` condition.
    :param limits: whether it escalates or denies because of what happened before. Such a rule applies to the workspace,
        too.
    """

    rule: Rule
    decision: Decision
    within: Root | None
    domains: DomainPatterns | None
    lists: tuple[PreparedList, ...]
    limits: bool

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def takes(self, path: str, created: Callable[[str], bool]) -> bool:
        """
        Check the ``paths`` condition.

        :param path: a real path.
        :param created: returns whether the session created a path.
        """
        if self.within is None:
            return True
        wanted = self.rule.conditions.paths.created if self.rule.conditions.paths is not None else None
        return self.within.holds(path) and (wanted is None or created(path) == wanted)

    def facts(self, history: CallHistory) -> str:
        """:returns: what made the conditions on earlier calls hold, if the rule has any and they do."""
        conditions = self.rule.conditions
        found = []
        if conditions.after is not None:
            found.append(f"after {history.earlier(conditions.after.server, conditions.after.tool)}")
        if (rate := conditions.rate) is not None:
            calls = history.count(conditions.server, conditions.tool, rate.seconds)
            found.append(f"{calls} calls within {rate.seconds:g} s")
        if conditions.paths is not None and conditions.paths.created is not None:
            found.append("created in this session" if conditions.paths.created else "not created in this session")
        return ", ".join(found)

    def fails(self, values: Values, role: str, history: CallHistory) -> str:
        """
        Check all conditions except ``paths``.

        :param role: the role that is judged, empty if the tool has none.
        :param history: what happened before.
        :returns: why the rule does not match; empty if it matches.
        """
        own = values.get(role, ())
        if role == "git-remote-url" and own and self.decision is Decision.ALLOW and self.rule.conditions.names_no_role:
            return "it allows the tool but does not name remotes, and this call has one"
        if self.domains is not None and not (own and all(self._covers(value) for value in own)):
            return "its domains do not match every address"
        if not all(condition.holds(values, role) for condition in self.lists):
            return "its lists do not contain every value"
        conditions = self.rule.conditions
        if conditions.after is not None and not history.earlier(conditions.after.server, conditions.after.tool):
            return "no such call was made before"
        if (rate := conditions.rate) is not None:
            calls = history.count(conditions.server, conditions.tool, rate.seconds)
            if calls < rate.calls:
                return f"only {calls} of {rate.calls} such calls were made within {rate.seconds:g} s"
        return ""

    def _covers(self, value: Value) -> bool:
        assert self.domains is not None
        if value.targets:
            return all(map(self.domains.match, value.targets))
        return self.domains.match_host(value.text)


def prepare(rule: Rule, within: Root | None, lists: Mapping[str, DynamicList]) -> PreparedRule:
    """
    Prepare one rule for evaluation.

    :param within: the directory of its ``paths`` condition, if it has one.
    :param lists: the policy's lists by name.
    """
    conditions = rule.conditions
    domains = None if conditions.domains is None else DomainPatterns(expand(conditions.domains.allowed, lists))
    members = (
        PreparedList(condition.roles, Members(expand(condition.allowed, lists), condition.match_type))
        for condition in conditions.lists
    )
    limits = conditions.has_memory and rule.then != "allow"
    return PreparedRule(rule, Decision(rule.then), within, domains, tuple(members), limits)


def why_irrelevant(conditions: Conditions, server: str, tool: str, role: str, roles: frozenset[str]) -> str:
    """
    Determine whether a rule can apply to a role of a tool.

    :param role: the role that is judged, empty if the tool has no resource role.
    :param roles: every role of the tool's arguments.
    :returns: why the rule cannot apply; empty if it can.
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
