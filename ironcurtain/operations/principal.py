"""Who acts, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ironcurtain.errors import NotAllowed


class Role(StrEnum):
    """
    What a principal may do: look at sessions, answer escalations, work in sessions, or all of it for everybody's.

    ``admin`` implies the others.
    """

    VIEW = "view"
    APPROVE = "approve"
    ATTACH = "attach"
    ADMIN = "admin"


LOCAL_ROLES = frozenset(Role)
"""What the owner of the home may do from the local machine: everything."""


@dataclass(frozen=True, slots=True)
class Principal:
    """
    Who acts.

    :param name: stands in the audit with every decision.
    """

    name: str
    roles: frozenset[Role]

    def require(self, role: Role) -> None:
        """:raises NotAllowed: the principal does not have this role."""
        if role not in self.roles and Role.ADMIN not in self.roles:
            raise NotAllowed(f"{self.name} may not do this: it needs the role {role}")
