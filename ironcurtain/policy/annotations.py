"""
The roles of each argument of each tool, including roles that depend on another argument.

These structures are the schema of ``tool-annotations.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ironcurtain.policy.roles import WRITING_ROLES, Role
from ironcurtain.policy.scalars import equal, truthy

Scalar = str | int | float | bool
"""The types that a condition can compare with."""


class Condition(Struct, frozen=True, forbid_unknown_fields=True):
    """
    A condition on another argument of the same call. Exactly one of ``equals``, ``in`` and ``is`` is set.

    An argument that is ``null`` counts as absent.
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
    """Roles that depend on the call: those of the first case whose condition holds, otherwise the default roles."""

    default: tuple[Role, ...]
    when: tuple[Case, ...] = ()

    @property
    def every(self) -> tuple[Role, ...]:
        """The roles that the argument can have in any call."""
        return (*self.default, *(role for case in self.when for role in case.roles))

    def resolve(self, arguments: Mapping[str, Any]) -> tuple[Role, ...]:
        """:returns: the roles in a call with these arguments."""
        return next((case.roles for case in self.when if case.condition.holds(arguments)), self.default)


class ToolAnnotation(Struct, frozen=True):
    """The roles of one tool's arguments. Unknown fields are metadata of the program that wrote them."""

    name: str = msgspec.field(name="toolName")
    args: dict[str, tuple[Role, ...] | Conditional]
    comment: str = ""

    def resolve(self, arguments: Mapping[str, Any]) -> dict[str, tuple[Role, ...]]:
        """:returns: a mapping of argument name to roles for a call with these arguments, in the annotation's order."""
        return {
            name: roles.resolve(arguments) if isinstance(roles, Conditional) else roles
            for name, roles in self.args.items()
        }

    @property
    def roles(self) -> frozenset[str]:
        """Every role that the tool's arguments can have in any call."""
        every = (roles.every if isinstance(roles, Conditional) else roles for roles in self.args.values())
        return frozenset(role for roles in every for role in roles)

    @property
    def writes(self) -> bool:
        """Whether the tool may change files."""
        return not WRITING_ROLES.isdisjoint(self.roles)

    @property
    def conditional(self) -> bool:
        """Whether the roles of any argument depend on the call."""
        return any(isinstance(roles, Conditional) for roles in self.args.values())


class ServerAnnotations(Struct, frozen=True):
    """The annotated tools of one server."""

    tools: tuple[ToolAnnotation, ...] = ()


class Annotations(Struct, frozen=True):
    """The annotated tools of all servers."""

    servers: dict[str, ServerAnnotations] = {}

    def writers(self) -> frozenset[str]:
        """:returns: the names of the servers that have a tool that changes files."""
        return frozenset(name for name, server in self.servers.items() if any(tool.writes for tool in server.tools))

    def table(self) -> dict[tuple[str, str], ToolAnnotation]:
        """:returns: a mapping of (server, tool) to annotation. The last annotation of a tool wins."""
        return {(name, tool.name): tool for name, server in self.servers.items() for tool in server.tools}

    def merged(self, more: Annotations) -> Annotations:
        """:returns: a copy with the annotations of ``more`` added. Where both annotate a tool, ``more`` wins."""
        servers = dict(self.servers)
        for name, added in more.servers.items():
            both = (servers.get(name, ServerAnnotations()), added)
            tools = {tool.name: tool for server in both for tool in server.tools}
            servers[name] = ServerAnnotations(tuple(tools.values()))
        return Annotations(servers)
