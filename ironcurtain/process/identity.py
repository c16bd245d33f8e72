"""
Identify a process. Pids are reused, but pid, start time and boot id together are unique.

The facts come from ``/proc`` (proc(5): field 22 of ``stat``, and ``sys/kernel/random/boot_id``).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

import msgspec

from ironcurtain.platform import processes


class ProcessIdentity(msgspec.Struct, frozen=True):
    """
    A process, uniquely identified.

    :param start_time: clock ticks between boot and its start; 0 if unknown.
    :param boot_id: the boot in which it ran; empty if unknown.
    """

    pid: int
    start_time: int
    boot_id: str

    @property
    def alive(self) -> bool:
        """Whether exactly this process is running (a zombie is not)."""
        if self.boot_id and (boot := boot_id()) and boot != self.boot_id:
            return False
        if not _running(self.pid):
            return False
        return not self.start_time or _start_time(self.pid) in (self.start_time, 0)


def identify(pid: int | None = None) -> ProcessIdentity:
    """:returns: the identity of a running process, by default of this one."""
    number = os.getpid() if pid is None else pid
    return ProcessIdentity(number, _start_time(number), boot_id())


def processes_above(pid: int | None = None) -> Iterator[int]:
    """:returns: the parent of a process, by default of this one, its parent and so on; nothing without ``/proc``."""
    number = os.getpid() if pid is None else pid
    while (fields := _stat(number)) and (number := int(fields[1])) > 0:
        yield number


def ended_children() -> Set[int]:
    """:returns: children of this process that have ended and were not waited for; nothing where Linux does not say."""
    found: set[int] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found |= {int(pid) for pid in path.read_text().split()}
    return {pid for pid in found if _stat(pid)[:1] == ["Z"]}


def started_at(pid: int) -> float:
    """:returns: when a process started, in seconds since the epoch, accurate to one second; 0 if unknown."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return 0.0
    boot = next((int(line.split()[1]) for line in lines if line.startswith("btime ")), 0)
    ticks = _start_time(pid)
    return boot + ticks / os.sysconf("SC_CLK_TCK") if boot and ticks else 0.0


def boot_id() -> str:
    """:returns: the id of this boot of the machine, or an empty string."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def hide_memory() -> None:
    """
    Prevent other processes of this uid from reading this process's memory and environment, and disable core files.

    Call this before the first secret is loaded; executed children are dumpable again.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    processes.hide_memory()


def _stat(pid: int) -> list[str]:
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    return data[data.rindex(b")") + 2 :].decode().split()  # the name in parentheses can contain any bytes


def _start_time(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def _running(pid: int) -> bool:
    if not 0 < pid < 2**31:
        return False
    if fields := _stat(pid):
        return fields[0] not in "ZX"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not os.path.isdir("/proc/self")
