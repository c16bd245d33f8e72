"""Rules prepared for evaluation, and the test whether one matches the values of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ironcurtain.policy.files import FileView
from ironcurtain.policy.history import CallHistory
from ironcurtain.policy.lists import DomainPatterns, DynamicList, Members, expand
from ironcurtain.policy.paths import Root
from ironcurtain.policy.protected import may_hold
from ironcurtain.policy.rules import Rule
from ironcurtain.policy.targets import Target
from ironcurtain.policy.verdict import Decision
from ironcurtain.text.quantities import counted


class Value(msgspec.Struct):
    """
    One value of an argument.

    :param argument: the argument's name.
    :param text: the value as judged, for messages.
    :param path: the real path, if the argument has a path role.
    :param written: the path as written in the call, if the argument has a path role.
    :param targets: the targets of the address, if the argument has an address role.
    :param readable: ``False`` for a value that is not text, which can be anything.
    :param whole: whether the call removes or moves the path with everything in it.
    """

    argument: str
    text: str
    path: str = ""
    written: str = ""
    targets: tuple[Target, ...] = ()
    readable: bool = True
    whole: bool = False


Values = Mapping[str, Sequence[Value]]
"""The values of a call by role."""

Created = Callable[[str], bool | None]
"""Returns whether the session created a path; ``None`` if that is not known."""


class PreparedList(msgspec.Struct, frozen=True):
    """A list condition with its lists expanded."""

    roles: tuple[str, ...]
    members: Members

    def has(self, value: Value) -> bool:
        """Whether a value is certainly on the list."""
        if value.targets:
            return all(map(self.members.match, value.targets))
        return value.readable and value.text in self.members

    def may_have(self, value: Value) -> bool:
        """Whether a value can be on the list."""
        if value.targets:
            return any(map(self.members.may_match, value.targets))
        return not value.readable or self.members.may_contain(value.text)


class PreparedRule(msgspec.Struct, frozen=True):
    """
    A rule with its lists expanded and its directory resolved.

    A rule that allows holds only if all values certainly match its conditions. A rule that escalates or denies holds
    for each value that can match them, whatever the others are.

    :param decision: the decision of the rule.
    :param within: the directory of its ``paths`` condition.
    :param domains: the patterns of its ``domains`` condition.
    :param limits: whether it escalates or denies because of what happened before, or in a part of the workspace. Such a
        rule applies to the workspace, too.
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

    @property
    def reason(self) -> str:
        """Why it decides so, for people and agents."""
        return self.rule.reason or self.rule.description or f"this is the decision of the rule {self.name}"

    @property
    def permits(self) -> bool:
        """Whether the rule allows what it matches."""
        return self.decision is Decision.ALLOW

    def takes(self, value: Value, role: str, created: Created, files: FileView) -> bool:
        """
        Whether the rule decides about a value, provided that it does not fail.

        :param role: the role that is judged.
        :param files: tells which names are those of one file.
        """
        if not self._takes_path(value, created, files):
            return False
        if self.permits:  # then fails() has compared every value
            return True
        if self.domains is not None and not self.may_cover(value):
            return False
        return all(each.may_have(value) for each in self.lists if role in each.roles)

    def _takes_path(self, value: Value, created: Created, files: FileView) -> bool:
        if self.within is None:
            return True
        if not self.permits and value.whole and Root(value.path).holds(self.within.path):
            return True
        held = self.within.holds(value.path) if self.permits else may_hold(self.within, value.path, files)
        wanted = self.rule.conditions.paths.created if self.rule.conditions.paths is not None else None
        if not held or wanted is None:
            return held
        known = created(value.path)
        return known == wanted or (known is None and not self.permits)

    def facts(self, history: CallHistory) -> str:
        """:returns: what made the conditions on earlier calls hold, if the rule has any and they do."""
        conditions = self.rule.conditions
        found = []
        if conditions.after is not None:
            found.append(f"after {history.earlier(conditions.after.server, conditions.after.tool)}")
        if (rate := conditions.rate) is not None:
            calls = history.count(conditions.server, conditions.tool, rate.seconds)
            found.append(f"{counted(calls, 'call')} within {rate.seconds:g} s")
        if conditions.paths is not None and conditions.paths.created is not None:
            found.append("created in this session" if conditions.paths.created else "not created in this session")
        return ", ".join(found)

    def fails(self, values: Values, role: str, left: Sequence[Value], history: CallHistory) -> str:
        """
        Check all conditions except ``paths``.

        :param values: all values of the call.
        :param role: the role that is judged, empty if the tool has none.
        :param left: the values of the role that no earlier rule has taken.
        :param history: what happened before.
        :returns: why the rule does not match; empty if it matches.
        """
        if role == "git-remote-url" and left and self.permits and self.rule.conditions.names_no_role:
            return "it allows the tool but does not name remotes, and this call has one"
        if self.domains is not None and not self._agree(left, self._covers, self.may_cover):
            return f"its domains do not match {'every' if self.permits else 'any'} address"
        for condition in self.lists:
            others = [value for each in condition.roles for value in values.get(each, ())]
            if not self._agree(left if role in condition.roles else others, condition.has, condition.may_have):
                return f"its lists do not contain {'every' if self.permits else 'any'} value"
        return self.fails_by(history)

    def fails_by(self, history: CallHistory) -> str:
        """:returns: why what happened before does not match the rule; empty if it does."""
        conditions = self.rule.conditions
        if conditions.after is not None and not history.earlier(conditions.after.server, conditions.after.tool):
            return "no such call was made before"
        if (rate := conditions.rate) is not None:
            calls = history.count(conditions.server, conditions.tool, rate.seconds)
            if calls < rate.calls:
                return f"only {calls} of {rate.calls} such calls were made within {rate.seconds:g} s"
        return ""

    def _agree(
        self, values: Sequence[Value], certainly: Callable[[Value], bool], possibly: Callable[[Value], bool]
    ) -> bool:
        """Whether values meet a condition: all certainly for a permission, any possibly else."""
        return bool(values) and (all(map(certainly, values)) if self.permits else any(map(possibly, values)))

    def _covers(self, value: Value) -> bool:
        assert self.domains is not None
        if value.targets:
            return all(map(self.domains.match, value.targets))
        return self.domains.match_host(value.text)

    def may_cover(self, value: Value) -> bool:
        """Whether the ``domains`` condition, which the rule has, can match an address."""
        assert self.domains is not None
        if value.targets:
            return any(map(self.domains.may_match, value.targets))
        return self.domains.may_match_host(value.text)


def prepare(rule: Rule, within: Root | None, lists: Mapping[str, DynamicList], workspace: Root) -> PreparedRule:
    """
    Prepare one rule for evaluation.

    :param within: the directory of its ``paths`` condition, if it has one.
    :param workspace: the session's.
    :param lists: the policy's lists by name.
    """
    conditions = rule.conditions
    domains = None if conditions.domains is None else DomainPatterns(expand(conditions.domains.allowed, lists))
    members = (
        PreparedList(condition.roles, Members(expand(condition.allowed, lists), condition.match_type))
        for condition in conditions.lists
    )
    inside = within is not None and workspace.holds(within.path)
    limits = (conditions.has_memory or inside) and rule.then != "allow"
    return PreparedRule(rule, Decision(rule.then), within, domains, tuple(members), limits)


def why_irrelevant(rule: Rule, server: str, tool: str, role: str, roles: frozenset[str]) -> str:
    """
    Determine whether a rule can apply to a role of a tool.

    :param role: the role that is judged, empty if the tool has no resource role.
    :param roles: every role of the tool's arguments.
    :returns: why the rule cannot apply; empty if it can.
    """
    conditions = rule.conditions
    if conditions.server is not None and server not in conditions.server:
        return "it is for other servers"
    if conditions.tool is not None and tool not in conditions.tool:
        return "it is for other tools"
    if conditions.roles is not None and roles.isdisjoint(conditions.roles):
        return "it is for other roles"
    if not role:
        telling = roles - {"none"} or roles
        if rule.then == "allow" and conditions.roles is not None and not telling <= frozenset(conditions.roles):
            return "it allows some of the roles only"
        return "it is for paths or addresses" if conditions.paths or conditions.domains else ""
    return "" if conditions.names(role) else "it is for other roles"
