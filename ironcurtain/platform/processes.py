"""Processes: their accounts, what others see of them, and their end."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from typing import Any

_DEATH_SIGNAL, _DUMPABLE, _SUBREAPER = 1, 4, 36
"""
Options of prctl(2): the signal to get when the parent dies; whether others of the account can look inside; whether
descendants whose parents end become children.
"""

if sys.platform == "linux":
    MARK_RESOURCE = int(resource.RLIMIT_RTTIME)
    """Processor time of a real-time process; without the right to be one, a process notices nothing of the limit."""
else:
    MARK_RESOURCE = -1

ENV_CHANGES_DIRECTORIES = sys.platform == "linux"
"""Whether env(1) is likely to know ``-C DIRECTORY``; other systems' do in late versions only."""


def become(uid: int, gid: int) -> None:
    """
    Give up root for good: real, effective and saved account and group change, and there are no other groups.

    :raises OSError: this process is not root, or the account cannot exist here, as in some containers.
    """
    os.setgroups([])
    if sys.platform == "linux":
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    else:  # for root, these change all three (setuid(2))
        os.setgid(gid)
        os.setuid(uid)


def hide_memory() -> None:
    """Keep others of this account from reading this process's memory and environment; only on Linux."""
    _prctl(_DUMPABLE, 0)


def end_with_parent() -> None:
    """End this process when its parent ends; only on Linux."""
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all processes below this one whose own parents end, in place of init; only on Linux."""
    _prctl(_SUBREAPER, 1)


def has_children() -> bool:
    """:returns: whether this process has children, running or ended, that were not waited for."""
    if sys.platform == "darwin":
        raise NotImplementedError("only the guards of Linux's sandboxes ask this")
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _prctl(option: int, value: int) -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        libc.prctl(option, value, 0, 0, 0)
