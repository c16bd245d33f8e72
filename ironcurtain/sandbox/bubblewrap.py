"""
Implement a :class:`~ironcurtain.sandbox.spec.Sandbox` with bubblewrap (``bwrap``).

This only generates the command line, and the data that bubblewrap reads from descriptors; callers start it like any
other program.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePath

from ironcurtain.process.accounts import Account
from ironcurtain.sandbox.spec import Access, Sandbox, SandboxLimits
from ironcurtain.sandbox.system_calls import filter_program

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
"""Directories that programs need in order to run; mounted read-only if they exist."""

SETTINGS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
)
NETWORK_SETTINGS = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl", "/etc/ca-certificates")
"""Files for name resolution and TLS, mounted only together with the network."""

FILTER_DESCRIPTOR = 3
"""Descriptor with the filter of system calls."""

FILES_DESCRIPTOR = 4
"""Descriptor of the first of a sandbox's own files; the others follow."""

_KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger")
"""Files that root can write without any capability, also in a user namespace."""

_PRESENT = (*SYSTEM, "/proc", "/dev")

PROBE_SECONDS = 10.0


@cache
def available(account: Account | None = None) -> str | None:
    """
    Find out whether bubblewrap works, by running it once per process.

    :param account: the account that programs will run as; ``None``: that of this process.
    :returns: ``None`` if it works, else the reason in words.
    """
    for program, package in (("bwrap", "bubblewrap"), ("prlimit", "util-linux"), ("setpriv", "util-linux")):
        if shutil.which(program) is None:
            return f"the program {program} is not installed (Debian: apt-get install {package})"
    if filter_program() is None:
        return f"the system calls of this kind of machine ({os.uname().machine}) are not known"
    trial = Sandbox(account=account)
    try:
        with opened(inputs(trial)) as descriptors:
            line, given = command(trial, ["/bin/true"], descriptors), list(descriptors.values())
            done = subprocess.run(
                line, stdin=subprocess.DEVNULL, capture_output=True, pass_fds=given, timeout=PROBE_SECONDS, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"bubblewrap cannot be started: {e}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
    return f"bubblewrap cannot make a sandbox here: {said}"


@contextmanager
def opened(contents: Mapping[int, bytes]) -> Iterator[dict[int, int]]:
    """
    :param contents: of :func:`inputs`; at most a pipe's 64 KiB each.
    :returns: for each number a descriptor from which its content can be read once.
    """
    descriptors = {number: _pipe_of(content) for number, content in contents.items()}
    try:
        yield descriptors
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)


def _pipe_of(content: bytes) -> int:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as file:
        file.write(content)
    return reader


def inputs(sandbox: Sandbox) -> dict[int, bytes]:
    """:returns: the data that bubblewrap reads, by descriptor."""
    contents = [content for _, content in sandbox.files]
    return {FILTER_DESCRIPTOR: filter_program() or b"", **dict(enumerate(contents, FILES_DESCRIPTOR))}


def command(sandbox: Sandbox, argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
    """
    :param descriptors: replacements for the descriptor numbers of :func:`inputs`.
    :returns: the command line that runs ``argv`` in a sandbox.
    """
    account, limits = sandbox.account, sandbox.limits
    line = [
        shutil.which("bwrap") or "bwrap",
        "--die-with-parent",
        *_separated(sandbox),
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]
    for path in _KERNEL_SETTINGS:
        line += ["--ro-bind-try", path, path]
    line += [*_temporary("/tmp", sandbox), "--perms", "0755", "--dir", "/etc"]
    for path in (*SYSTEM, *SETTINGS, *(NETWORK_SETTINGS if sandbox.network else ())):
        line += _system(path)
    for path, access in sandbox.mounts():
        line += [*_above(path, sandbox), *_mount(path, access, sandbox)]
    for number, (path, _) in enumerate(sandbox.files, FILES_DESCRIPTOR):
        line += ["--perms", "0444", "--ro-bind-data", str(descriptors.get(number, number)), path]
    line += ["--seccomp", str(descriptors.get(FILTER_DESCRIPTOR, FILTER_DESCRIPTOR)), "--chdir", sandbox.cwd, "--"]
    inside = [*_limited(limits, account), *argv]
    return [*line, *(inside if account is None else account.command(inside))]


def is_system(path: str) -> bool:
    """:returns: whether every sandbox has a path."""
    return any(PurePath(path).is_relative_to(place) for place in _PRESENT)


def _separated(sandbox: Sandbox) -> list[str]:
    if sandbox.account is None:
        return ["--unshare-all", *(["--share-net"] if sandbox.network else []), "--cap-drop", "ALL"]
    # Without a user namespace, in which the account would not exist. Switching to it drops the capabilities: two are
    # for that, one for entering its directory before.
    line = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL"]
    line += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_DAC_READ_SEARCH"]
    return line if sandbox.network else [*line, "--unshare-net"]


def _limited(limits: SandboxLimits, account: Account | None) -> list[str]:
    # In a user namespace only the sandbox's processes count, otherwise all those of the account.
    processes = limits.processes + (0 if account is None else _tasks_of(account.uid))
    return [
        shutil.which("prlimit") or "prlimit",
        f"--data={_at_most(limits.memory, resource.RLIMIT_DATA)}",
        f"--nproc={_at_most(processes, resource.RLIMIT_NPROC)}",
        f"--nofile={_at_most(limits.files, resource.RLIMIT_NOFILE)}",
        f"--fsize={_at_most(limits.file_size, resource.RLIMIT_FSIZE)}",
        "--core=0",
        "--",
    ]


def _at_most(wanted: int, kind: int) -> int:
    """:returns: a limit that can be set: it cannot exceed this process's own limit."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _tasks_of(uid: int) -> int:
    """:returns: the number of processes and threads of an account."""
    count = 0
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if directory.stat().st_uid == uid:
                count += sum(1 for _ in (directory / "task").iterdir())
        except OSError:  # it has ended
            continue
    return count


def _above(path: str, sandbox: Sandbox) -> list[str]:
    """
    :returns: options that create the directories above a path, which otherwise have the same permissions as outside.
    """
    if sandbox.account is None:
        return []
    there = (*_PRESENT, *(place for place, access in sandbox.mounts() if access in (Access.READ, Access.WRITE)))
    above = [parent for parent in PurePath(path).parents if not any(map(parent.is_relative_to, there))]
    empty = {PurePath("/"), PurePath("/tmp"), PurePath(sandbox.home)}
    return [
        word for parent in reversed(above) if parent not in empty for word in ("--perms", "0755", "--dir", str(parent))
    ]


def _mount(path: str, access: Access, sandbox: Sandbox) -> list[str]:
    if access is Access.EMPTY:
        return _temporary(path, sandbox)
    if access is Access.HIDDEN:
        if os.path.isdir(path):
            return ["--perms", "0555", "--tmpfs", path, "--remount-ro", path]
        return ["--ro-bind", "/dev/null", path]
    return ["--ro-bind" if access is Access.READ else "--bind", path, path]


def _temporary(path: str, sandbox: Sandbox) -> list[str]:
    mode = "0755" if sandbox.account is None else "1777"
    return ["--perms", mode, "--size", str(sandbox.limits.temporary), "--tmpfs", path]


def _system(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind-try", path, path]
