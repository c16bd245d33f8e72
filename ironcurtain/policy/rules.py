"""
Policies as written: rules with conditions, lists, and protected paths.

These structures are the schema of the rules in ``policy.toml`` and in compiled policies.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.history import AfterCondition, RateCondition
from ironcurtain.policy.lists import DynamicList, MatchType
from ironcurtain.policy.named_paths import WrongPath, directory_of
from ironcurtain.policy.roles import DOMAIN_ROLES, LIMITING_ROLES, PATH_ROLES, Role
from ironcurtain.policy.verdict import Automatic
from ironcurtain.text.quantities import noun


class PathsCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """
    Holds for the paths of these roles that are a directory or are inside it.

    :param created: whether the session must have created the file, or create it with the call; ``None``: no matter.
    """

    roles: tuple[Role, ...]
    within: str
    created: bool | None = None

    def __post_init__(self) -> None:
        if wrong := sorted(set(self.roles) - PATH_ROLES):
            raise ValueError(f"{', '.join(wrong)}: {noun(len(wrong), 'not a path role', 'not path roles')}")
        try:
            directory_of(self.within)
        except WrongPath as e:
            raise ValueError(f"within = {self.within!r}: {e}") from None

    @property
    def directory(self) -> str:
        """The directory, without a wildcard: it begins with ``/``, ``~`` or ``/workspace``."""
        return directory_of(self.within)


class DomainsCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """Holds if every address of these roles has a host that a pattern matches; ``@name`` is a list."""

    roles: tuple[Role, ...]
    allowed: tuple[str, ...]

    def __post_init__(self) -> None:
        if wrong := sorted(set(self.roles) - DOMAIN_ROLES):
            raise ValueError(f"{', '.join(wrong)}: {noun(len(wrong), 'not an address role', 'not address roles')}")


class ListCondition(Struct, frozen=True, forbid_unknown_fields=True):
    """Holds if every value of these roles is on the list; ``@name`` is a list."""

    roles: tuple[Role, ...]
    allowed: tuple[str, ...]
    match_type: MatchType = msgspec.field(name="matchType")


class Conditions(Struct, frozen=True, forbid_unknown_fields=True):
    """The conditions of a rule. A rule matches if all of them hold."""

    roles: tuple[Role, ...] | None = None
    server: tuple[str, ...] | None = None
    tool: tuple[str, ...] | None = None
    paths: PathsCondition | None = None
    domains: DomainsCondition | None = None
    lists: tuple[ListCondition, ...] = ()
    after: AfterCondition | None = None
    rate: RateCondition | None = None

    @property
    def has_memory(self) -> bool:
        """Whether the rule depends on what happened before in the session."""
        created = self.paths is not None and self.paths.created is not None
        return created or self.after is not None or self.rate is not None

    def names(self, role: str) -> bool:
        """Whether the rule can apply to a role: all conditions on roles include it, but for those on limiting roles."""
        if self.roles is not None and role not in self.roles:
            return False
        if any(condition is not None and role not in condition.roles for condition in (self.paths, self.domains)):
            return False
        lists = [condition for condition in self.lists if not LIMITING_ROLES.issuperset(condition.roles)]
        return not lists or any(role in condition.roles for condition in lists)

    @property
    def names_no_role(self) -> bool:
        """Whether the rule has conditions on servers and tools only."""
        return self.roles is None and self.paths is None and self.domains is None and not self.lists


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """
    One rule of a policy.

    :param approvals: number of different people who must approve a call that the rule escalates.
    :param auto: whether the auto-approver may approve such a call; ``irreversible`` includes calls that delete or push.
    """

    name: str
    conditions: Conditions = msgspec.field(name="if")
    then: Literal["allow", "escalate", "deny"]
    reason: str = ""
    description: str = ""
    principle: str = ""
    approvals: Literal[1, 2] = 1
    auto: bool | Literal["irreversible"] = False

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a rule needs a name")
        if self.approvals > 1 and self.then != "escalate":
            raise ValueError('approvals = 2 needs then = "escalate"')
        if self.auto and (self.then != "escalate" or self.approvals > 1):
            raise ValueError('auto needs then = "escalate" and one approval')

    @property
    def automatic(self) -> Automatic:
        """Which calls the auto-approver may approve."""
        if self.auto == "irreversible":
            return Automatic.ALWAYS
        return Automatic.REVERSIBLE if self.auto else Automatic.NEVER


class Policy(Struct, frozen=True):
    """
    A whole policy, ready for :class:`~ironcurtain.policy.engine.PolicyEngine`.

    :param protected: paths in addition to those that are always protected.
    :param annotations: those in the policy file and in the files that it names.
    :param approval: the tables ``[approval.*]``, unparsed.
    :param tables: what those of them about the desktop say; they precede ``rules``.
    :param source: the file that it was read from, for messages.
    """

    rules: tuple[Rule, ...] = ()
    protected: tuple[str, ...] = ()
    lists: dict[str, DynamicList] = {}
    annotations: Annotations = Annotations()
    approval: dict[str, Any] = {}
    tables: tuple[Rule, ...] = ()
    source: str = "policy"

    @property
    def every_rule(self) -> tuple[Rule, ...]:
        """All rules, in the order in which they are tried."""
        return (*self.tables, *self.rules)
