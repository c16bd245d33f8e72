"""What a process of ours gives up that reads what nobody trusts."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from ironcurtain.identity import hide_memory

NOBODY = 65534
"""The user and the group that own nothing (Linux's overflow ids); for when our owner is root."""

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that comes when the parent dies."""


def leave() -> None:
    """Leave the owner's session and directory. To be called before all that is needed is loaded."""
    with suppress(PermissionError):  # it leads a session already
        os.setsid()
    os.chdir("/")


def step_back(far: int) -> None:
    """
    Let others run first. To be called before :func:`confine`.

    :param far: up to 19, as nice(2) has it.
    """
    os.nice(far)
    with suppress(OSError):  # where each session is a group of its own to the scheduler (sched(7)), that counts
        Path("/proc/self/autogroup").write_text(str(far))


def confine(memory: int) -> None:
    """
    Give up all that is not needed any more. Nothing can be opened, written to or started after that.

    :param memory: most bytes of address space.
    """
    if os.geteuid() == 0:
        with suppress(OSError):  # there may be no such user in a container of our own
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    hide_memory()
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(limit, (0, 0))
