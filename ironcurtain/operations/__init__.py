"""
The operations on sessions. Roles and ownership are checked here and nowhere else.

Every front end, local or remote, calls these functions with a :class:`Principal`.
"""

from ironcurtain.operations.principal import LOCAL_ROLES, Principal, Role

__all__ = ["LOCAL_ROLES", "Principal", "Role"]
