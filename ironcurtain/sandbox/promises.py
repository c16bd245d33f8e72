"""What each kind of sandbox holds, in the words in which people are told."""

from __future__ import annotations

import os

from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import cgroups
from ironcurtain.sandbox.landlock.reach import can_switch
from ironcurtain.sandbox.spec import Kind

NAMES = {
    Kind.BUBBLEWRAP: "bubblewrap",
    Kind.CONTAINER: "containers of the Docker Engine",
    Kind.LANDLOCK: "Landlock",
}
"""How each kind is called."""

MEMORY = "the memory of all processes together"
TEMPORARY_SPACE, PROCESSES = "the size of temporary files", "the number of processes"


def unlimited(kind: Kind, account: Account | None = None) -> tuple[str, ...]:
    """
    :param account: the account that programs run as; ``None``: that of this process.
    :returns: what a kind of sandbox does not limit here, though others do, or though it does on other machines.
    """
    if kind is Kind.CONTAINER:
        return ()
    has_cgroup = cgroups.unavailable() is None
    is_root = os.geteuid() == 0 and (account is None or runs_as_root(kind, account))  # root's processes have no limit
    return (
        *(() if has_cgroup else (MEMORY,)),
        *((TEMPORARY_SPACE,) if kind is Kind.LANDLOCK else ()),
        *((PROCESSES,) if is_root and not has_cgroup else ()),
    )


def weaknesses(kind: Kind, account: Account | None = None) -> tuple[str, ...]:
    """
    :param account: as above.
    :returns: what a kind of sandbox does not hold, as parts of a sentence that begins with "They do not".
    """
    limits = tuple(f"limit {what}" for what in unlimited(kind, account))
    if kind is not Kind.LANDLOCK:
        return limits
    return (
        "hide names, sizes and dates of other files, only their contents",
        *limits,
        "permit any network or UNIX socket",
        "have /dev/shm, /proc or inotify, which browsers and others need",
    )


def runs_as_root(kind: Kind, account: Account | None) -> bool:
    """:returns: whether programs run as root, without any capability, as root may not switch to another account."""
    return kind is Kind.LANDLOCK and os.geteuid() == 0 and (account is None or not can_switch())


def description(kind: Kind, account: Account | None = None) -> str:
    """:returns: the kind and what it does not hold, in words."""
    found = weaknesses(kind, account)
    return f"{NAMES[kind]}, which does not {'; does not '.join(found)}" if found else NAMES[kind]
