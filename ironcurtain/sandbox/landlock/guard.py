"""
The process outside a sandbox that is the parent of all its processes, and ends them.

Every process of a sandbox has a mark that it cannot change: an unusual limit of a resource, which the filter of system
calls protects, and which everyone can read in ``/proc``. So all of them are found, also those that were left by a
sandbox whose guard was killed.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ironcurtain.platform.processes import has_children

_LINE = re.compile(r"^Max realtime timeout\s+(\d+)\s+(\d+)\s", re.MULTILINE)

PREFIX = "ironcurtain-landlock-"
"""Prefix of the names of sandboxes' own directories; see :func:`directory_name`."""

PATIENCE = 1.5
"""Seconds between a guard's SIGTERM, which it passes on, and the end of its sandbox."""

KILL_SECONDS = 10.0
"""Maximum seconds until all processes of a sandbox have ended; those that wait for a disk take longest."""


def new_mark() -> int:
    """:returns: a number that no other sandbox of this machine has."""
    return 1 << 61 | int.from_bytes(os.urandom(7), "big")


def marked(mark: int) -> Iterator[int]:
    """:returns: the processes with a mark, without those that have ended."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            limits = Path("/proc", entry, "limits").read_text()
            state = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):  # it has ended
            continue
        found = _LINE.search(limits)
        if found is not None and int(found[2]) == mark and state not in "ZX":
            yield int(entry)


def end_marked(mark: int) -> bool:
    """
    End all processes with a mark. First they are stopped, so that none starts another meanwhile.

    :returns: whether all have ended.
    """
    until = time.monotonic() + KILL_SECONDS
    stopped: set[int] = set()
    while time.monotonic() < until and (new := set(marked(mark)) - stopped):
        _signal(new, signal.SIGSTOP)
        stopped |= new
    while time.monotonic() < until:
        left = set(marked(mark))
        if not left:
            return True
        _signal(left, signal.SIGKILL)
        _reap()
        time.sleep(0.005)
    return not set(marked(mark))


def directory_name(mark: int) -> str:
    """:returns: the name of a sandbox's own directory; this process, its guard, is identified in it."""
    return f"{PREFIX}{os.geteuid()}-{os.getpid()}-{_start_time(os.getpid())}-{mark:x}"


def sweep(temporary: str) -> None:
    """
    End what is left of sandboxes whose guards were killed, and remove their directories.

    :param temporary: the directory for temporary files.
    """
    for path in Path(temporary).glob(f"{PREFIX}{os.geteuid()}-*"):
        with suppress(OSError, ValueError):
            guard, started, mark = path.name.removeprefix(PREFIX).split("-")[1:]
            status = path.lstat()
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()  # others can use the name
            if is_ours and _start_time(int(guard)) != started and end_marked(int(mark, 16)):
                remove(path)


def remove(directory: Path) -> None:
    """Remove a sandbox's directory, whatever permissions the program has left there; no process may be left."""
    for top, names, _ in os.walk(directory):
        for path in (os.path.join(top, name) for name in names):
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _start_time(pid: int) -> str:
    """:returns: clock ticks between boot and a process's start (proc(5)); empty if it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap() -> dict[int, int]:
    """:returns: wait statuses of the children that have ended, by process id."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    return ended


class Guard:
    """
    :param program: process id of the sandboxed program, a child of this process.
    :param mark: the mark of its sandbox.
    """

    def __init__(self, program: int, mark: int) -> None:
        self._program, self._mark = program, mark
        self._status: int | None = None
        self._deadline = float("inf")
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._pass_on)

    def watch(self, listener: int, serve: Callable[[], bool]) -> int:
        """
        Answer the sandbox's calls until the program has ended; then end all others.

        :param listener: descriptor with the calls; -1 for none.
        :returns: the program's wait status.
        """
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if listener >= 0:
            poll.register(listener, select.POLLIN)
        while self._status is None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                break
            for ready, _ in poll.poll(None if left == float("inf") else left * 1000):
                if ready == self._woken:
                    with suppress(BlockingIOError):
                        os.read(self._woken, 4096)
                elif not serve():
                    poll.unregister(listener)
            self._status = _reap().get(self._program, self._status)
        if self._status is None or has_children():  # all that is left of the sandbox descends from this process
            end_marked(self._mark)
        ended = _reap()  # also orphans, whose parent this process has become
        return ended.get(self._program, int(signal.SIGKILL)) if self._status is None else self._status

    def _pass_on(self, number: int, _: object) -> None:
        self._deadline = min(self._deadline, time.monotonic() + PATIENCE)
        with suppress(ProcessLookupError, PermissionError):
            os.kill(self._program, number)
