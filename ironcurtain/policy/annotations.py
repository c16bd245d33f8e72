"""
What each argument of each tool means, also where that depends on another argument.

The structures are the format of ``tool-annotations.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ironcurtain.policy.roles import WRITING_ROLES, Role
from ironcurtain.policy.scalars import equal, truthy

Scalar = str | int | float | bool
"""What a condition may compare with."""


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """
    A condition on another argument of the same call: exactly one of ``equals``, ``in`` and ``is``.

    ``null`` counts as absent.
    """

    arg: str
    equals: Scalar | UnsetType = UNSET
    one_of: tuple[Scalar, ...] | UnsetType = msgspec.field(name="in", default=UNSET)
    state: Literal["present", "absent", "truthy", "falsy"] | UnsetType = msgspec.field(name="is", default=UNSET)

    def __post_init__(self) -> None:
        if [self.equals, self.one_of, self.state].count(UNSET) != 2:
            raise ValueError("a condition needs exactly one of equals, in and is")

    def holds(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments meets the condition."""
        value = arguments.get(self.arg)
        if self.equals is not UNSET:
            return value is not None and equal(value, self.equals)
        if self.one_of is not UNSET:
            return value is not None and any(equal(value, allowed) for allowed in self.one_of)
        if self.state in ("present", "absent"):
            return (value is not None) == (self.state == "present")
        return truthy(value) == (self.state == "truthy")


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """The roles of an argument if a condition holds."""

    condition: Condition
    roles: tuple[Role, ...]


class Conditional(Struct, frozen=True, forbid_unknown_fields=True):
    """Roles that depend on the call: those of the first case that holds, else the default ones."""

    default: tuple[Role, ...]
    when: tuple[Case, ...] = ()

    @property
    def every(self) -> tuple[Role, ...]:
        """The roles that it may have in any call."""
        return (*self.default, *(role for case in self.when for role in case.roles))

    def resolve(self, arguments: Mapping[str, Any]) -> tuple[Role, ...]:
        """:returns: the roles in a call with these arguments."""
        return next((case.roles for case in self.when if case.condition.holds(arguments)), self.default)


class ToolAnnotation(Struct, frozen=True):
    """What the arguments of one tool mean. Fields that we do not know are metadata of the program that wrote them."""

    name: str = msgspec.field(name="toolName")
    args: dict[str, tuple[Role, ...] | Conditional]
    comment: str = ""

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, tuple[Role, ...]]:
        """:returns: argument name to roles, in the annotation's order, for a call with these arguments."""
        return {
            name: roles.resolve(arguments) if isinstance(roles, Conditional) else roles
            for name, roles in self.args.items()
        }

    @property
    def writes(self) -> bool:
        """Whether the tool may change files."""
        every = (roles.every if isinstance(roles, Conditional) else roles for roles in self.args.values())
        return any(not WRITING_ROLES.isdisjoint(roles) for roles in every)

    @property
    def conditional(self) -> bool:
        """Whether the meaning depends on the call."""
        return any(isinstance(roles, Conditional) for roles in self.args.values())


class ServerAnnotations(Struct, frozen=True):
    """The tools of one server."""

    tools: tuple[ToolAnnotation, ...] = ()


class Annotations(Struct, frozen=True):
    """What the tools of all servers mean."""

    servers: dict[str, ServerAnnotations] = {}

    def writers(self) -> frozenset[str]:
        """:returns: the servers with a tool that changes files."""
        return frozenset(name for name, held in self.servers.items() if any(tool.writes for tool in held.tools))

    def table(self) -> dict[tuple[str, str], ToolAnnotation]:
        """:returns: server and tool name to annotation; of two for one tool the later one."""
        return {(server, tool.name): tool for server, held in self.servers.items() for tool in held.tools}

    def merged(self, more: Annotations) -> Annotations:
        """:returns: these, with those of ``more`` added; where both speak of one tool, ``more`` counts."""
        servers = dict(self.servers)
        for name, added in more.servers.items():
            tools = {tool.name: tool for held in (servers.get(name, ServerAnnotations()), added) for tool in held.tools}
            servers[name] = ServerAnnotations(tuple(tools.values()))
        return Annotations(servers)
