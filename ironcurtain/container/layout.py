"""Where things are inside a container."""

from __future__ import annotations

from ironcurtain.container.spec import Mount

WORKSPACE = "/workspace"
"""What the agent works on, writable."""

HOME = "/home/agent"
"""The agent's own home directory, writable and kept between containers of one session."""

SOCKETS = "/run/ironcurtain"
"""The sockets of the two proxies; read-only, since connecting needs no more."""

ORIENTATION = "/etc/ironcurtain"
"""Files that we made for the agent, read-only."""

SOCKET_NAMES = frozenset(("proxy.sock", "mitm-proxy.sock"))
"""The only sockets below :data:`SOCKETS`: the MCP proxy's and the MITM proxy's."""

USER = "agent"
"""The user's name inside, whatever the account is called outside."""


def mounts(*, workspace: str, home: str, sockets: str, orientation: str, passwd: str, group: str) -> tuple[Mount, ...]:
    """
    All that a session's container sees of this machine.

    :param passwd: a file with the text of :func:`passwd_text`, ``group`` one with that of :func:`group_text`.
    """
    return (
        Mount(workspace, WORKSPACE, read_only=False),
        Mount(home, HOME, read_only=False),
        Mount(sockets, SOCKETS),
        Mount(orientation, ORIENTATION),
        Mount(passwd, "/etc/passwd"),
        Mount(group, "/etc/group"),
    )


def passwd_text(uid: int, gid: int) -> str:
    """:returns: an ``/etc/passwd`` in which the user exists; without it Node, git and ssh fail."""
    return f"root:x:0:0:root:/:/bin/false\n{USER}:x:{uid}:{gid}:{USER}:{HOME}:/bin/sh\n"


def group_text(gid: int) -> str:
    """:returns: an ``/etc/group`` in which the user's group exists."""
    return f"{USER}:x:{gid}:\n" if gid == 0 else f"root:x:0:\n{USER}:x:{gid}:\n"
