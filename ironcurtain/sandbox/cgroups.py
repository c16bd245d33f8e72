"""
Bound the memory and the number of processes of a whole sandbox, with a cgroup of its own.

Limits of resources bound one process's private memory only. A cgroup counts all: shared memory, files in memory, and
what is forked. Root makes cgroups itself, below or beside its own; for others the user's systemd does, if there is one.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ironcurtain.errors import Unavailable
from ironcurtain.process import bounded
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.identity import identify
from ironcurtain.process.search_path import host_path, host_program, required_program
from ironcurtain.sandbox.cgroup_places import Place, first_version, second_version
from ironcurtain.sandbox.spec import SandboxLimits

PREFIX = "ironcurtain-sandbox-"
"""Prefix of the names of root's cgroups; the process id of the sandbox's first process follows."""

SLICE = "ironcurtain-sandbox.slice"
"""The slice of scopes that a user's systemd makes for sandboxes."""

CANNOT_START = 125
"""Exit status of a sandbox that cannot enter its cgroup."""

TRIAL_SECONDS = 5.0
"""Time limit in seconds of a trial; systemd needs some 20 ms."""

SETTLE_SECONDS = 0.5
"""Seconds that the last processes of a sandbox may take to end after its first one (usually milliseconds)."""

_CONTROLLERS = {"memory", "pids"}

_LIMITS_INSIDE = """\
while IFS= read -r line; do case $line in 0::*) own=${line#0::} ;; esac; done </proc/self/cgroup
test -e "/proc/self/fd/$2" && exec cat "$1$own/memory.max" "$1$own/pids.max"
"""


class Cgroups(ABC):
    """A way to put programs into cgroups."""

    @abstractmethod
    def limited(self, line: Sequence[str], limits: SandboxLimits) -> list[str]:
        """:returns: a command line that runs another in a cgroup of its own, or not at all."""

    @abstractmethod
    def problem(self) -> str | None:
        """:returns: why it does not work, after a trial; ``None`` if it does."""

    def sweep(self) -> bool:
        """
        Remove the cgroups of sandboxes that have ended.

        :returns: whether none of them is left.
        """
        return True


@dataclass(frozen=True, slots=True)
class OwnCgroups(Cgroups):
    """
    Cgroups that this process, which is root, makes itself.

    :param places: where; a sandbox is in one below each of them.
    :param swaps: whether the machine has swap, so that it must be counted.
    """

    places: tuple[Place, ...]
    swaps: bool

    def limited(self, line: Sequence[str], limits: SandboxLimits) -> list[str]:
        """See :class:`Cgroups`, also for the following methods."""
        mkdir = shlex.quote(required_program("mkdir", "coreutils"))
        own = [f"{shlex.quote(f'{place.directory}/{PREFIX}')}$$" for place in self.places]
        steps = [f"{mkdir} -p {' '.join(own)}"]
        for place, directory in zip(self.places, own, strict=True):
            for name, value in place.values(limits.memory, limits.processes):
                step = f"echo {value} >{directory}/{name}"
                is_needed = name != place.swap or self.swaps
                steps.append(step if is_needed else f"{{ test ! -e {directory}/{name} || {step}; }}")
        steps += [f"echo $$ >{directory}/cgroup.procs" for directory in own]
        refusal = f'{{ echo "the memory of a sandbox cannot be limited" >&2; exit {CANNOT_START}; }}'
        return ["/bin/sh", "-c", f'{" && ".join(steps)} || {refusal}; exec "$@"', "sh", *line]

    def problem(self) -> str | None:
        self.sweep()
        try:
            done = bounded.run(self.limited(["/bin/true"], SandboxLimits()), Bounds(TRIAL_SECONDS))
        except (OSError, Unavailable, Unfinished) as e:
            return f"a trial failed: {e}"
        self.sweep()
        return None if done.status == 0 else f"no cgroup can be made below {self.places[0].directory}"

    def sweep(self) -> bool:
        left = False
        for place in self.places:
            with suppress(OSError):
                for name in os.listdir(place.directory):
                    pid = name.removeprefix(PREFIX)
                    if name != pid and pid.isdigit() and not identify(int(pid)).alive:
                        left = not _removed(f"{place.directory}/{name}") or left
        return not left


@dataclass(frozen=True, slots=True)
class UserScopes(Cgroups):
    """
    Scopes of the user's systemd, which removes them.

    :param program: path of ``systemd-run``.
    :param runtime: the user's runtime directory, by which systemd is reached.
    :param mounted: where cgroups of version 2 are mounted.
    """

    program: str
    runtime: str
    mounted: str

    def limited(self, line: Sequence[str], limits: SandboxLimits) -> list[str]:
        """See :class:`Cgroups`, also for the following method."""
        env = required_program("env", "coreutils")
        values = {"MemoryMax": limits.memory, "MemorySwapMax": 0, "TasksMax": limits.processes}
        properties = [word for name, value in values.items() for word in ("-p", f"{name}={value}")]
        scope = [self.program, "--user", "--scope", "--quiet", "--collect", f"--slice={SLICE}", *properties, "--"]
        return [env, f"XDG_RUNTIME_DIR={self.runtime}", *scope, env, "-u", "XDG_RUNTIME_DIR", *line]

    def problem(self) -> str | None:
        limits = SandboxLimits()
        try:
            with open(os.devnull, "rb") as given:  # sandboxes are given descriptors, too
                words = ["/bin/sh", "-c", _LIMITS_INSIDE, "sh", self.mounted, str(given.fileno())]
                line = self.limited(words, limits)
                done = bounded.run(line, Bounds(TRIAL_SECONDS), descriptors=(given.fileno(),))
        except (OSError, Unfinished) as e:
            return f"the user's systemd does not answer: {e}"
        if done.output.split() == [b"%d" % limits.memory, b"%d" % limits.processes]:
            return None
        return "the user's systemd does not answer, or may not limit memory"


class InheritedCgroup(Cgroups):
    """This process is in such a cgroup, and so is what it starts: ``git-remote``, with the sandboxes for git."""

    def limited(self, line: Sequence[str], limits: SandboxLimits) -> list[str]:
        """See :class:`Cgroups`, also for the following method."""
        return list(line)

    def problem(self) -> str | None:
        return None


def is_inside(own: str) -> bool:
    """:returns: whether a process with this content of ``/proc/self/cgroup`` is in the cgroup of a sandbox."""
    parts = (part for line in own.splitlines() for part in line.split("/")[1:])
    return any(part == SLICE or re.fullmatch(rf"{PREFIX}\d+", part) for part in parts)


def _removed(directory: str) -> bool:
    try:
        for name in os.listdir(directory):
            if name.startswith(PREFIX):  # of a sandbox that a program in this one made
                _removed(f"{directory}/{name}")
        os.rmdir(directory)
    except FileNotFoundError:
        return True
    except OSError:  # there still are processes in it
        return False
    return True


def own_cgroups(mounts: str, own: str, swaps: bool) -> OwnCgroups | str:
    """
    :param mounts: content of ``/proc/self/mountinfo``.
    :param own: content of ``/proc/self/cgroup``.
    :returns: where root can make cgroups; or why nowhere, in words.
    """
    if places := first_version(mounts, own):
        return OwnCgroups(places, swaps)
    above = second_version(mounts, own)
    if not above:
        return "no cgroups for memory and processes are mounted"
    for place in above:
        if _hands_on(place.directory):
            return OwnCgroups((place,), swaps)
    with suppress(OSError):  # the machine's uppermost cgroup may have processes and controllers
        Path(above[-1].directory, "cgroup.subtree_control").write_text("+memory +pids")
        return OwnCgroups(above[-1:], swaps)
    return "the cgroups above this process's cannot be changed, as in most containers"


def _hands_on(directory: str) -> bool:
    try:
        return set(Path(directory, "cgroup.subtree_control").read_text().split()) >= _CONTROLLERS
    except OSError:
        return False


def user_scopes(mounts: str, search: str | None = None) -> UserScopes | str:
    """
    :param search: the ``PATH``; ``None``: this process's.
    :returns: how an ordinary user's systemd is reached; or why it is not, in words.
    """
    program = host_program("systemd-run", search)
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    mounted = second_version(mounts, "0::/")
    if program is None or not os.path.isdir(runtime):
        return "an ordinary user needs systemd for that, and none runs for this one (loginctl enable-linger starts one)"
    return UserScopes(program, runtime, mounted[-1].directory) if mounted else "there are no cgroups of version 2"


def _tried() -> Cgroups | str:
    return _tried_with(host_path())


@cache
def _tried_with(search: str) -> Cgroups | str:
    """:returns: what works, found out once per process and ``PATH``; or why nothing does, in words."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        own, swaps = Path("/proc/self/cgroup").read_text(), Path("/proc/swaps")
        has_swap = swaps.exists() and len(swaps.read_text().splitlines()) > 1
        if is_inside(own):
            return InheritedCgroup()
        way = own_cgroups(mounts, own, has_swap) if os.geteuid() == 0 else user_scopes(mounts, search)
    except OSError as e:
        return f"the kernel does not say where its cgroups are: {e.strerror}"
    if isinstance(way, str):
        return way
    return way if (problem := way.problem()) is None else problem


def unavailable() -> str | None:
    """:returns: why sandboxes get no cgroup here, in words; ``None`` if they do."""
    way = _tried()
    return way if isinstance(way, str) else None


def limited(line: Sequence[str], limits: SandboxLimits) -> list[str]:
    """
    :param limits: those of memory and processes are used, for all processes together.
    :returns: a command line that runs another in a cgroup of its own; the same one if there can be none.
    """
    way = _tried()
    return list(line) if isinstance(way, str) else way.limited(line, limits)


def sweep() -> bool:
    """
    Remove the cgroups of sandboxes that have ended, also of those that a killed process has left.

    :returns: whether none of them is left; otherwise some of their processes are just about to end.
    """
    way = _tried()
    return True if isinstance(way, str) else way.sweep()


def settle() -> None:
    """:func:`sweep`, and wait a little for processes that are about to end. This blocks."""
    until = time.monotonic() + SETTLE_SECONDS
    while not sweep() and time.monotonic() < until:
        time.sleep(0.002)
