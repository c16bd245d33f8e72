"""Principals and their roles."""

from __future__ import annotations

import os
import pwd
from enum import StrEnum

import msgspec

from ironcurtain.errors import NotAllowed


class Role(StrEnum):
    """
    What a principal may do: view sessions, answer escalations, work in sessions, or all of it in all users' sessions.

    ``admin`` implies the others.
    """

    VIEW = "view"
    APPROVE = "approve"
    ATTACH = "attach"
    ADMIN = "admin"


NAME_LIMIT = 100
"""Maximum length in characters of a principal's name, which stands in the audit log."""

LOCAL_ROLES = frozenset(Role)
"""The roles of the home's owner on the local machine: all."""


class Principal(msgspec.Struct, frozen=True):
    """
    Who acts.

    :param name: name in the audit log, recorded with every decision.
    """

    name: str
    roles: frozenset[Role]

    def require(self, role: Role) -> None:
        """:raises NotAllowed: the principal does not have this role."""
        if role not in self.roles and Role.ADMIN not in self.roles:
            raise NotAllowed(f"{self.name} may not do this: it needs the role {role}")


def owner() -> Principal:
    """:returns: the owner of the home, acting on this machine."""
    uid = os.geteuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Principal(f"local:{name}", LOCAL_ROLES)
