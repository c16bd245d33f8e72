"""The parts of a compilation, each a conversation of its own: the rules for all servers, and each server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.policy.annotations import Annotations, ServerAnnotations, ToolAnnotation
from ironcurtain.policy.rules import Rule
from ironcurtain.policy_compiler.annotating import Annotated
from ironcurtain.policy_compiler.rounds import Compiled, GaveUp


class ServerTools(msgspec.Struct, frozen=True):
    """
    The tools of a server.

    :param known: their present annotations, which no proposal changes.
    :param definitions: those that are pinned and that agents may see, by name of tool.
    """

    name: str
    known: ServerAnnotations
    definitions: Mapping[str, Mapping[str, Any]]

    def unannotated(self) -> dict[str, Mapping[str, Any]]:
        """:returns: the definitions of the tools that have no annotation, sorted by name."""
        known = {tool.name for tool in self.known.tools}
        return {name: each for name, each in sorted(self.definitions.items()) if name not in known}

    def annotated(self, proposed: Mapping[str, ToolAnnotation]) -> Annotations:
        """:returns: the annotations of all its tools, sorted, so that equal ones have an equal digest."""
        tools = {**proposed, **{tool.name: tool for tool in self.known.tools}}
        return Annotations({self.name: ServerAnnotations(tuple(tool for _, tool in sorted(tools.items())))})


class Skipped(msgspec.Struct, frozen=True):
    """Nothing was asked about a server, since none of its tools is known."""


class Part(msgspec.Struct, frozen=True):
    """
    What came of a part.

    :param server: its name; empty for the rules for all servers.
    :param annotated: the proposed annotations.
    """

    server: str
    outcome: Compiled | GaveUp | Skipped
    annotated: Annotated

    def rules(self) -> tuple[Rule, ...]:
        """:returns: the proposed rules."""
        return self.outcome.proposal.policy_rules() if isinstance(self.outcome, Compiled) else ()


def in_order(for_all: Sequence[Rule], of_servers: Iterable[Rule]) -> tuple[Rule, ...]:
    """
    :param for_all: the rules for all servers, which escalate or deny.
    :returns: the rules in the order of a policy: no rule of a server can allow what is denied for all.
    """
    denials = [rule for rule in for_all if rule.then == "deny"]
    return (*denials, *of_servers, *(rule for rule in for_all if rule.then != "deny"))


def proposed_rules(parts: Sequence[Part]) -> tuple[Rule, ...]:
    """:returns: the rules of all parts in the order of a policy."""
    for_all = [rule for part in parts if not part.server for rule in part.rules()]
    return in_order(for_all, (rule for part in parts if part.server for rule in part.rules()))


def proposed_annotations(parts: Iterable[Part]) -> Annotations:
    """:returns: the annotations of all parts."""
    return Annotations(
        {part.server: ServerAnnotations(tuple(part.annotated.tools.values())) for part in parts if part.annotated.tools}
    )
