"""Which tools of a server are judged by rules, and about which a person is asked."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ironcurtain.policy.annotations import Annotations
from ironcurtain.policy.judgement import WORKSPACE_SERVERS
from ironcurtain.policy.rules import Policy
from ironcurtain.text.quantities import counted


class Coverage(msgspec.Struct, frozen=True):
    """
    :param tools: number of tools.
    :param annotated: number of those with an annotation.
    :param named: whether the policy says anything about the server.
    """

    tools: int
    annotated: int
    named: bool

    def __str__(self) -> str:
        """The sentence for people."""
        if not self.named:
            return f"each call of its {counted(self.tools, 'tool')} asks, as the policy does not name the server"
        others = "" if self.annotated == self.tools else ", the others ask"
        return f"{self.annotated} of {self.tools} tools judged by rules{others}"


def coverage(server: str, tools: Collection[str], annotations: Annotations, policy: Policy) -> Coverage:
    """
    :param tools: the names of its tools.
    :param annotations: all that are in force.
    """
    known = annotations.table()
    of_policy = server in policy.annotations.servers or any(
        server in (rule.conditions.server or ()) for rule in policy.rules
    )
    return Coverage(
        len(tools), sum((server, tool) in known for tool in tools), of_policy or server in WORKSPACE_SERVERS
    )
