"""
What people and programs may do with sessions, checked here and nowhere else.

Every front end, local or remote, ends in these functions with a :class:`Principal`.
"""

from ironcurtain.operations.principal import LOCAL_ROLES, Principal, Role

__all__ = ["LOCAL_ROLES", "Principal", "Role"]
