"""Where cgroups can be made: from what the kernel says of its hierarchies and of a process (cgroups(7))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec


class Place(msgspec.Struct, frozen=True):
    """
    A directory in which cgroups are made.

    :param controllers: those that it must have for its children; empty: it has them in any case.
    :param memory: file of a cgroup with the limit of its memory in bytes.
    :param swap: file with the limit of its swap; ``swap_counts_memory``: of memory and swap together.
    :param processes: file with the limit of its processes and threads.
    """

    directory: str
    memory: str = ""
    swap: str = ""
    swap_counts_memory: bool = False
    processes: str = ""

    def values(self, memory: int, processes: int) -> Iterator[tuple[str, int]]:
        """:returns: files of a new cgroup and what is written to them, in this order."""
        if self.memory:
            yield self.memory, memory
        if self.swap:
            yield self.swap, memory if self.swap_counts_memory else 0
        if self.processes:
            yield self.processes, processes


def first_version(mounts: str, own: str) -> tuple[Place, ...]:
    """
    :param mounts: content of ``/proc/self/mountinfo``.
    :param own: content of ``/proc/self/cgroup``.
    :returns: this process's own cgroups, which may have others below them; empty if this machine has not both
        hierarchies of version 1.
    """
    memory, processes = (_directory(mounts, own, name) for name in ("memory", "pids"))
    if memory is None or processes is None:
        return ()
    limit, both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
    first = Place(memory, memory=limit, swap=both, swap_counts_memory=True)
    return first, Place(processes, processes="pids.max")


def second_version(mounts: str, own: str) -> tuple[Place, ...]:
    """
    :returns: as above, for version 2: the cgroups above this process's own, the nearest first, and last its own if
        that is the uppermost. A cgroup with processes has no others with limits below it, unless it is the machine's.
    """
    if (directory := _directory(mounts, own, "")) is None:
        return ()
    top = PurePosixPath(_mount(mounts, "") or directory)
    above = [path for path in PurePosixPath(directory).parents if path.is_relative_to(top)] or [top]
    return tuple(Place(str(path), "memory.max", "memory.swap.max", processes="pids.max") for path in above)


def _directory(mounts: str, own: str, controller: str) -> str | None:
    """:returns: this process's directory in a hierarchy; ``controller`` is empty for version 2."""
    path = next((parts[2] for parts in _cgroups(own) if controller in parts[1].split(",")), None)
    found = _mounted(mounts, controller)
    if path is None or found is None or ".." in PurePosixPath(path).parts:
        return None
    root, point = found
    if not PurePosixPath(path).is_relative_to(root):
        return None
    return str(PurePosixPath(point, PurePosixPath(path).relative_to(root)))


def _mount(mounts: str, controller: str) -> str | None:
    found = _mounted(mounts, controller)
    return None if found is None else found[1]


def _cgroups(own: str) -> Iterator[list[str]]:
    for line in own.splitlines():
        if len(parts := line.split(":", 2)) == 3 and parts[2].startswith("/"):
            yield parts


def _mounted(mounts: str, controller: str) -> tuple[str, str] | None:
    """:returns: root and mount point of the first mount of a hierarchy."""
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        place, kind = before.split(), after.split()
        if not dash or len(place) < 6 or len(kind) < 3:
            continue
        fits = kind[0] == "cgroup2" if not controller else kind[0] == "cgroup" and controller in kind[2].split(",")
        if fits:
            return _unescaped(place[3]), _unescaped(place[4])
    return None


def _unescaped(path: str) -> str:
    """:returns: a path with its blanks and backslashes (proc_pid_mountinfo(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
