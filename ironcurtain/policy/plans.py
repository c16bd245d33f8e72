"""What is to be judged in a call of one tool, worked out once for each tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ironcurtain.policy.matching import ReadyRule, irrelevance
from ironcurtain.policy.roles import PATH_ROLES, REPOSITORY_ROLES, RESOURCE_ROLES, URL_ROLES


@dataclass(frozen=True, slots=True)
class ArgumentPlan:
    """
    One argument that is judged.

    :param roles: those that count: resources, and what a list in a rule names.
    :param is_path: whether a role is one of paths.
    :param is_remote: whether a role is a git remote.
    :param is_url: whether a role is a web address.
    :param is_resource: whether its values must be text.
    :param forwards_path: whether the server gets the real path in the place of what was written.
    """

    name: str
    roles: tuple[str, ...]
    is_path: bool
    is_remote: bool
    is_url: bool
    is_resource: bool
    forwards_path: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What is to be judged in a call.

    :param arguments: in the annotation's order.
    :param roles: the resource roles, each once, in the annotation's order.
    :param path_roles: those of them that are roles of paths.
    :param rules: role to the rules that may concern it; the empty role if there is no other.
    :param repositories: the arguments that name a repository, on a git server.
    :param remotes: the arguments that name a git remote.
    """

    arguments: tuple[ArgumentPlan, ...]
    roles: tuple[str, ...]
    path_roles: tuple[str, ...]
    rules: Mapping[str, tuple[ReadyRule, ...]]
    repositories: tuple[str, ...]
    remotes: tuple[str, ...]


def make_plan(
    server: str,
    tool: str,
    roles_by_argument: Mapping[str, Sequence[str]],
    rules: Iterable[ReadyRule],
    listed: frozenset[str],
) -> Plan:
    """
    Work out the plan for a tool.

    :param roles_by_argument: the roles as they are in the call.
    :param listed: the roles that any list in a rule names.
    """
    every = frozenset(role for roles in roles_by_argument.values() for role in roles)
    arguments = tuple(
        plan for name, roles in roles_by_argument.items() if (plan := _argument(name, roles, listed)) is not None
    )
    own = tuple(dict.fromkeys(role for plan in arguments for role in plan.roles if role in RESOURCE_ROLES))
    return Plan(
        arguments,
        own,
        tuple(role for role in own if role in PATH_ROLES),
        {
            role: tuple(rule for rule in rules if not irrelevance(rule.rule.conditions, server, tool, role, every))
            for role in own or ("",)
        },
        tuple(p.name for p in arguments if server == "git" and not REPOSITORY_ROLES.isdisjoint(p.roles)),
        tuple(plan.name for plan in arguments if plan.is_remote),
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
