"""
A process of ours that reads what nobody trusts: what it gives up, and how it serves its owner, which talks to it over
the socket that is its standard input. It ends when its owner does.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ironcurtain.process.frames import MessageReader, packed
from ironcurtain.process.identity import hide_memory

NOBODY = 65534
"""The user and the group that own nothing (Linux's overflow ids); for when our owner is root."""

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that comes when the parent dies."""

MEMORY_LIMIT = 1024 * 1024 * 1024
"""
Most bytes of address space (some fifty screens with all of their history, or ten times what the largest
prompt takes).
"""

READ_SIZE = 256 * 1024
"""Most bytes of one read: as much as a socket holds."""

M = TypeVar("M")


def run(try_it: Callable[[], None], nice: int, serve: Callable[[socket.socket], None]) -> None:
    """
    Be such a process, until the owner is gone.

    :param try_it: loads what Python loads only when it needs it, since later nothing can be loaded.
    :param nice: how far it steps back for what people wait for; up to 19, as nice(2) has it.
    :param serve: talks to the owner.
    """
    leave()
    try_it()
    step_back(nice)
    confine(MEMORY_LIMIT)
    with socket.socket(fileno=0) as owner:
        serve(owner)


def carry_out(owner: socket.socket, orders: MessageReader[M], handle: Callable[[M], Iterable[msgspec.Struct]]) -> None:
    """
    Carry out what comes, until nothing more does.

    :param handle: gives the replies to an order.
    :raises ProtocolViolation: what comes is no order.
    """
    while data := owner.recv(READ_SIZE):
        for order in orders.feed(data):
            for reply in handle(order):
                owner.sendall(packed(reply))


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
