"""The evaluation plan of a tool: what to judge in its calls, and by which rules. Made once for each tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ironcurtain.policy.matching import PreparedRule, why_irrelevant
from ironcurtain.policy.roles import PATH_ROLES, REPOSITORY_ROLES, RESOURCE_ROLES, URL_ROLES


class ArgumentPlan(msgspec.Struct, frozen=True):
    """
    One argument that is judged.

    :param roles: its resource roles, and those that a list condition names.
    :param is_path: whether one of the roles is a path.
    :param is_remote: whether one of the roles is a git remote.
    :param is_url: whether one of the roles is a URL.
    :param is_resource: whether its values must be strings.
    :param forwards_path: whether the server receives the real path instead of the path as written.
    """

    name: str
    roles: tuple[str, ...]
    is_path: bool
    is_remote: bool
    is_url: bool
    is_resource: bool
    forwards_path: bool


class Plan(msgspec.Struct, frozen=True):
    """
    What to judge in a call of a tool.

    :param arguments: in the annotation's order.
    :param roles: the resource roles without duplicates, in the annotation's order.
    :param path_roles: the path roles among them.
    :param rules: the rules that can apply to each role; the only key is the empty string if there are no roles.
    :param limits: those of the rules that apply to what needs no rule, too.
    :param repositories: the arguments that name a repository, if this is a git server.
    :param remotes: the arguments that name a git remote.
    :param every: all roles, the descriptive ones too.
    """

    arguments: tuple[ArgumentPlan, ...]
    roles: tuple[str, ...]
    path_roles: tuple[str, ...]
    rules: Mapping[str, tuple[PreparedRule, ...]]
    limits: Mapping[str, tuple[PreparedRule, ...]]
    repositories: tuple[str, ...]
    remotes: tuple[str, ...]
    every: frozenset[str] = frozenset()


def make_plan(
    server: str,
    tool: str,
    roles_by_argument: Mapping[str, Sequence[str]],
    rules: Iterable[PreparedRule],
    listed: frozenset[str],
) -> Plan:
    """
    Make the plan of a tool.

    :param roles_by_argument: the roles that the arguments have in the call.
    :param listed: the roles that the list conditions of any rule name.
    """
    every = frozenset(role for roles in roles_by_argument.values() for role in roles)
    arguments = tuple(
        plan for name, roles in roles_by_argument.items() if (plan := _argument(name, roles, listed)) is not None
    )
    own = tuple(dict.fromkeys(role for plan in arguments for role in plan.roles if role in RESOURCE_ROLES))
    by_role = {
        role: tuple(rule for rule in rules if not why_irrelevant(rule.rule, server, tool, role, every))
        for role in own or ("",)
    }
    return Plan(
        arguments,
        own,
        tuple(role for role in own if role in PATH_ROLES),
        by_role,
        {role: limits for role, its in by_role.items() if (limits := tuple(rule for rule in its if rule.limits))},
        tuple(p.name for p in arguments if server == "git" and not REPOSITORY_ROLES.isdisjoint(p.roles)),
        tuple(plan.name for plan in arguments if plan.is_remote),
        every,
    )


def _argument(name: str, roles: Sequence[str], listed: frozenset[str]) -> ArgumentPlan | None:
    counting = tuple(dict.fromkeys(role for role in roles if role in RESOURCE_ROLES or role in listed))
    if not counting:
        return None
    resources = [role for role in counting if role in RESOURCE_ROLES]
    return ArgumentPlan(
        name,
        counting,
        is_path=not PATH_ROLES.isdisjoint(counting),
        is_remote="git-remote-url" in counting,
        is_url=not URL_ROLES.isdisjoint(counting),
        is_resource=bool(resources),
        forwards_path=bool(resources) and resources[0] in PATH_ROLES,
    )
