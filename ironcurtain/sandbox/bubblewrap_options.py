"""
The command line that implements a :class:`~ironcurtain.sandbox.spec.Sandbox` with bubblewrap (``bwrap``).

Bubblewrap before 0.12 follows links inside a mounted directory to the host while it makes mount points below it
(CVE-2026-87766), and a version number does not tell whether a distribution has mended that. Where there are mount
points below a mounted directory, such a program therefore runs inside a second bubblewrap, whose host it takes for the
real one: there is nothing but the paths of the sandbox.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from ironcurtain.process.accounts import Account
from ironcurtain.process.own_programs import unreached
from ironcurtain.process.search_path import required_program
from ironcurtain.sandbox import hold
from ironcurtain.sandbox.spec import MEBIBYTE, Access, Sandbox, SandboxLimits, directories_above, is_below
from ironcurtain.sandbox.system_paths import CERTIFICATES, SETTINGS, SYSTEM, is_system

FILTER_DESCRIPTOR = 3
"""Descriptor with the filter of system calls."""

OPTIONS_DESCRIPTOR, OUTER_DESCRIPTOR = 4, 5
"""
Descriptors with the options, and with those of the bubblewrap around it: the command line of a sandbox's first process
can be read in the sandbox, and would name paths of the host.
"""

HANDOVER_DESCRIPTOR = 6
"""Descriptor of the socket that the listening sockets of a network are sent to."""

FILES_DESCRIPTOR = 7
"""Descriptor of the first of a sandbox's own files; the others follow."""

ROOT_SIZE = 16 * MEBIBYTE
"""Bytes of the directories and files that bubblewrap itself makes in the root directory, which is in memory."""

_HOLD = Path(hold.__file__).read_text()

_KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger")
"""Files that root can write without any capability, also in a user namespace."""

HOSTNAME = "ironcurtain"
"""The name of the machine in every sandbox."""

_SEPARATE = (
    *("--unshare-ipc", "--unshare-uts", "--hostname", HOSTNAME, "--unshare-cgroup-try"),
    *("--cap-drop", "ALL"),
)

_PASSED_ON = "/bound"
"""Where the bubblewrap around another one has what has another path in the sandbox."""

_NEEDED_FOR_ACCOUNT = ("CAP_SETUID", "CAP_SETGID", "CAP_DAC_READ_SEARCH")
"""Two for switching to it, which drops all of them; one for entering its directory before."""


class Bubblewrap(msgspec.Struct, frozen=True):
    """
    A program that makes sandboxes.

    :param path: its absolute path.
    :param needs: further paths without which it does not start.
    :param safe: returns whether it does not follow links to the host. Most sandboxes do not depend on it.
    """

    path: str
    needs: tuple[str, ...] = ()
    safe: Callable[[], bool] = lambda: False

    def command(self, sandbox: Sandbox, argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
        """
        :param descriptors: replacements for the numbers of the descriptors that it reads.
        :returns: the command line that runs ``argv`` in a sandbox.
        """
        line = [self.path, "--args", _number(OPTIONS_DESCRIPTOR, descriptors), *_last(sandbox, descriptors), "--"]
        if self._nested(sandbox):
            line = [self.path, "--args", _number(OUTER_DESCRIPTOR, descriptors), "--", *line]
        if sandbox.listeners:
            held = [_number(HANDOVER_DESCRIPTOR, descriptors), ",".join(map(str, sandbox.listeners))]
            line = [*holding(), *held, *line]
        inside = [*_limited(sandbox.limits, sandbox.account), *argv]
        return [*line, *(inside if sandbox.account is None else sandbox.account.command(inside))]

    def inputs(self, sandbox: Sandbox) -> dict[int, bytes]:
        """:returns: the data that it reads besides the filter of system calls, by descriptor."""
        if not self._nested(sandbox):
            options = _inner(sandbox, ("--unshare-net", "--unshare-pid", "--proc", "/proc"), sandbox.source)
            return {OPTIONS_DESCRIPTOR: _encoded(options), **numbered(sandbox)}
        # The kernel refuses a second /proc, since bubblewrap covers parts of the first; so the two share one.
        # The outer one says which process is held: ids of the inner one's mean nothing outside.
        own = () if sandbox.listeners else ("--unshare-net",)
        passed_on = {each.target: f"{_PASSED_ON}/{number}" for number, each in enumerate(sandbox.bound)}
        inner = _inner(sandbox, (*own, "--bind", "/proc", "/proc"), lambda path: passed_on.get(path, path))
        outer = _outer(self, sandbox, passed_on)
        return {OPTIONS_DESCRIPTOR: _encoded(inner), OUTER_DESCRIPTOR: _encoded(outer), **numbered(sandbox)}

    def _nested(self, sandbox: Sandbox) -> bool:
        return bool(sandbox.inner_mount_points()) and not self.safe()


def holding() -> list[str]:
    """:returns: the start of the command line that runs :mod:`~ironcurtain.sandbox.hold`."""
    if unreached() is None:
        return [sys.executable, "-I", "-S", hold.__file__]
    # This process was root and has another account now, which does not reach where root has installed IronCurtain.
    return [required_program("python3", "python3"), "-I", "-S", "-c", _HOLD]


def numbered(sandbox: Sandbox) -> dict[int, bytes]:
    """:returns: the contents of a sandbox's own files, by descriptor."""
    return dict(enumerate((content for _, content in sandbox.files), FILES_DESCRIPTOR))


def at_most(wanted: int, kind: int) -> int:
    """:returns: a limit that can be set: it cannot exceed this process's own limit."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def tasks_of(uid: int) -> int:
    """:returns: the number of processes and threads of an account."""
    count = 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(os.listdir(f"{entry.path}/task"))
        except OSError:  # it has ended
            continue
    return count


def system_paths(sandbox: Sandbox) -> tuple[str, ...]:
    """:returns: paths of the system that a sandbox has, if they exist."""
    return (*SYSTEM, *SETTINGS, *(CERTIFICATES if sandbox.listeners else ()))


def _encoded(options: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(option) + b"\0" for option in options)


def _number(own: int, descriptors: Mapping[int, int]) -> str:
    return str(descriptors.get(own, own))


def _inner(sandbox: Sandbox, processes: Sequence[str], source: Callable[[str], str]) -> list[str]:
    """
    :param processes: options for the namespaces of processes and network.
    :param source: returns where a path comes from.
    """
    own = {*(path for path, _ in sandbox.files), *(each.target for each in sandbox.bound)}
    line = ["--die-with-parent", *_separated(sandbox), *_in_memory("/", ROOT_SIZE)]
    line += [*processes, "--dev", "/dev", *_in_memory("/dev/shm", sandbox.limits.temporary, "1777")]
    line += ["--remount-ro", "/dev"]
    for path in _KERNEL_SETTINGS:
        line += ["--ro-bind-try", path, path]
    line += [*_temporary("/tmp", sandbox), "--perms", "0755", "--dir", "/etc"]
    for path in system_paths(sandbox):
        line += _system(path) if path not in own else []
    there = _there(sandbox)
    for path, access in sandbox.mounts():
        line += [*_above(path, sandbox, there), *_mount(path, access, sandbox, source)]
    return line


def _last(sandbox: Sandbox, descriptors: Mapping[int, int]) -> list[str]:
    """:returns: the options with numbers of descriptors, and what must come after them."""
    line = list[str]()
    for number, (path, _) in enumerate(sandbox.files, FILES_DESCRIPTOR):
        line += ["--perms", "0444", "--ro-bind-data", _number(number, descriptors), path]
    line += ["--remount-ro", "/", "--seccomp", _number(FILTER_DESCRIPTOR, descriptors)]
    return [*line, "--chdir", sandbox.cwd]


def _outer(program: Bubblewrap, sandbox: Sandbox, passed_on: Mapping[str, str]) -> list[str]:
    """
    :param passed_on: where to put what has another path in the sandbox.
    :returns: the options that run bubblewrap where the host is only a sandbox's paths.
    """
    line = ["--die-with-parent"]
    if sandbox.account is None:
        line += ["--unshare-user"]
    else:
        line += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_NET_ADMIN"]
        line += [word for capability in _NEEDED_FOR_ACCOUNT for word in ("--cap-add", capability)]
    line += ["--unshare-net"] if sandbox.listeners else []
    line += ["--unshare-pid", *_in_memory("/", ROOT_SIZE), "--proc", "/proc", "--dev", "/dev"]
    line += ["--perms", "0755", "--dir", "/etc", "--dir", "/tmp"]  # bubblewrap needs the latter for itself
    for path in system_paths(sandbox):
        line += _system(path)
    for path in (program.path, *program.needs):
        line += [] if is_system(path) else ["--ro-bind", path, path]
    there = _there(sandbox)
    for path in sandbox.outermost():
        line += [*_above(path, sandbox, there), "--bind", path, path] if path not in passed_on else []
    for each in sandbox.bound:
        line += ["--bind", each.source, passed_on[each.target]]
    return line


def _separated(sandbox: Sandbox) -> list[str]:
    if sandbox.account is None:
        return [*_SEPARATE, "--unshare-user"]
    # Without a user namespace, in which the account would not exist.
    return [*_SEPARATE, *(word for capability in _NEEDED_FOR_ACCOUNT for word in ("--cap-add", capability))]


def _limited(limits: SandboxLimits, account: Account | None) -> list[str]:
    # In a user namespace only the sandbox's processes count, otherwise all those of the account.
    processes = limits.processes + (0 if account is None else tasks_of(account.uid))
    return [
        required_program("prlimit"),
        *((f"--data={at_most(limits.memory, resource.RLIMIT_DATA)}",) if limits.data else ()),
        f"--nproc={at_most(processes, resource.RLIMIT_NPROC)}",
        f"--nofile={at_most(limits.files, resource.RLIMIT_NOFILE)}",
        f"--fsize={at_most(limits.file_size, resource.RLIMIT_FSIZE)}",
        "--core=0",
        "--",
    ]


def _there(sandbox: Sandbox) -> tuple[str, ...]:
    """:returns: what need not be made, with everything below it."""
    given = (place for place, access in sandbox.mounts() if access in (Access.READ, Access.WRITE))
    return (*SYSTEM, "/proc", "/dev", *given)


def _above(path: str, sandbox: Sandbox, there: Sequence[str]) -> list[str]:
    """
    :param there: see :func:`_there`.
    :returns: options that create the directories above a path, which otherwise have the same permissions as outside.
    """
    if sandbox.account is None:
        return []
    empty = {"/", "/tmp", sandbox.home}
    above = [
        each
        for each in directories_above(path)
        if each not in empty and not any(is_below(each, place) for place in there)
    ]
    return [word for parent in reversed(above) for word in ("--perms", "0755", "--dir", parent)]


def _mount(path: str, access: Access, sandbox: Sandbox, source: Callable[[str], str]) -> list[str]:
    if access is Access.EMPTY:
        return _temporary(path, sandbox)
    return ["--ro-bind" if access is Access.READ else "--bind", source(path), path]


def _temporary(path: str, sandbox: Sandbox) -> list[str]:
    mode = "0755" if sandbox.account is None else "1777"
    return _in_memory(path, sandbox.limits.temporary, mode)


def _in_memory(path: str, size: int, mode: str = "0755") -> list[str]:
    return ["--perms", mode, "--size", str(size), "--tmpfs", path]


def _system(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind-try", path, path]
