"""
A worker process that reads untrusted input: gives up rights, and serves its owner over the socket that is its standard
input. It ends when its owner does.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from ironcurtain.platform.processes import become, end_with_parent
from ironcurtain.process.frames import MessageReader, packed
from ironcurtain.process.identity import hide_memory

NOBODY = 65534
"""The user and the group that own nothing (Linux's overflow ids); used if the owner is root."""

MEMORY_LIMIT = 1024 * 1024 * 1024
"""
Maximum bytes of address space (some fifty screens with all of their history, or ten times what the largest prompt
takes).
"""

READ_SIZE = 256 * 1024
"""Maximum bytes of one read: as much as a socket holds."""

M = TypeVar("M")


def run(try_it: Callable[[], None], nice: int, serve: Callable[[socket.socket], None]) -> None:
    """
    Run as such a process until the owner disconnects.

    :param try_it: loads modules that Python loads lazily, since nothing can be loaded later.
    :param nice: its niceness, up to 19 (nice(2)).
    :param serve: communicates with the owner.
    """
    leave()
    try_it()
    step_back(nice)
    confine(MEMORY_LIMIT)
    with socket.socket(fileno=0) as owner:
        serve(owner)


def carry_out(owner: socket.socket, orders: MessageReader[M], handle: Callable[[M], Iterable[msgspec.Struct]]) -> None:
    """
    Execute orders until the connection ends.

    :param handle: returns the replies to an order.
    :raises ProtocolViolation: an order is invalid.
    """
    while data := owner.recv(READ_SIZE):
        for order in orders.feed(data):
            for reply in handle(order):
                owner.sendall(packed(reply))


def leave() -> None:
    """Leave the owner's session and directory. Call this before loading everything."""
    with suppress(PermissionError):  # it is a session leader already
        os.setsid()
    os.chdir("/")


def step_back(far: int) -> None:
    """
    Lower this process's priority. Call this before :func:`confine`.

    :param far: up to 19 (nice(2)).
    """
    os.nice(far)
    with suppress(OSError):  # relevant if the scheduler groups processes by session (sched(7))
        Path("/proc/self/autogroup").write_text(str(far))


def confine(memory: int) -> None:
    """
    Give up all rights that are not needed. Afterwards nothing can be opened, written to or started.

    :param memory: maximum bytes of address space.
    """
    if os.geteuid() == 0:
        with suppress(OSError):  # a container may have no such user
            become(NOBODY, NOBODY)
    hide_memory()
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        resource.setrlimit(limit, (0, 0))
