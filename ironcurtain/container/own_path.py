"""
Decide where an agent finds its workspace: at the workspace's own path, since virtual environments and scripts name it,
and at :data:`~ironcurtain.container.spec.WORKSPACE` as well.
"""

from __future__ import annotations

from pathlib import PurePath

from ironcurtain.container.spec import HOME, MIRRORED, ORIENTATION, SOCKETS, WORKSPACE

SYSTEM = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/root", "/run", "/sbin", "/usr", "/var"),
    *MIRRORED[1:],
)
"""Directories of the system, which every image has. Other accounts cannot enter ``/root``."""

FREE = ("/var/home", "/var/tmp", "/var/www")
"""Directories below these in which no image has anything."""

SHARED = ("/home", "/media", "/mnt", "/opt", "/srv")
"""Directories that may be anything in an image; directories below them hardly collide."""

_OURS = (WORKSPACE, HOME, SOCKETS, ORIENTATION)


def obstacle(workspace: str) -> str:
    """
    :param workspace: real path of a workspace.
    :returns: the path in containers and sandboxes that its own path would hide or be hidden by; empty: nothing.
    """
    own = PurePath(workspace)
    if workspace in SHARED:
        return workspace
    for place in map(PurePath, (*_OURS, *SYSTEM)):
        below = own.is_relative_to(place) and not any(PurePath(free) in own.parents for free in FREE)
        if below or place.is_relative_to(own):
            return str(place)
    return ""


def agent_directory(workspace: str) -> str:
    """
    :param workspace: real path of a workspace.
    :returns: the path at which an agent works: its own, or ``/workspace`` where that collides with something else.
    """
    return WORKSPACE if obstacle(workspace) else workspace


def workspace_places(directory: str, workspace: str) -> tuple[str, ...]:
    """
    :param directory: where the agent of a session works, as when the session began.
    :param workspace: real path of its workspace; empty for one that is the session's own.
    :returns: all paths of the workspace for this agent, that one first.
    """
    return tuple(dict.fromkeys((directory, WORKSPACE, *((agent_directory(workspace),) if workspace else ()))))
