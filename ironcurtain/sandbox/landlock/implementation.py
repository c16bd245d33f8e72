"""The caller's side: whether Landlock works here, what it cannot express, and the helper process's command line."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePath

from ironcurtain.platform.kernel import lacking
from ironcurtain.process import bounded
from ironcurtain.process.accounts import FREE_UIDS, Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.own_programs import unreached
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.bubblewrap_options import FILES_DESCRIPTOR, at_most, numbered, tasks_of
from ironcurtain.sandbox.landlock import start
from ironcurtain.sandbox.landlock.filter import stricter
from ironcurtain.sandbox.landlock.guard import sweep
from ironcurtain.sandbox.landlock.kernel import SIGNALS_CONFINED, version
from ironcurtain.sandbox.landlock.order import Order
from ironcurtain.sandbox.landlock.reach import can_switch
from ironcurtain.sandbox.spec import Access, Sandbox
from ironcurtain.sandbox.system_calls import filter_program
from ironcurtain.sandbox.system_paths import SETTINGS, SYSTEM

PROBE_SECONDS = 10.0

HARMLESS = (
    *SETTINGS,
    "/etc/debian_version",
    "/etc/locale.alias",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/shells",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    *(f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")),
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/vm/overcommit_memory",
)
"""
Settings without secrets. Programs that tolerate a missing file often end at one that they may not read, as git, Node
and pip do; and there is no ``/proc`` of its own.
"""


def unavailable(account: Account | None = None, alone: bool = False) -> str | None:
    """
    Find out whether Landlock works, by running a program once per process.

    :param account: the account that programs will run as; ``None``: that of this process.
    :param alone: as in :class:`~ironcurtain.sandbox.spec.Sandbox`.
    :returns: ``None`` if it works, else the reason in words.
    """
    if (problem := lacking("Landlock")) is not None:
        return problem
    found = version()
    if not found:
        return "this kernel has no Landlock, or it is switched off (Linux 5.13 or newer; it must be in the list lsm=)"
    if not alone and not _confines_signals(found, account):
        return (
            f"Landlock is of version {found} here, in which programs can end other processes of their account; "
            f"{SIGNALS_CONFINED} is needed (Linux 6.12), or root that may become another account"
        )
    if (problem := unreached()) is not None:
        return f"Landlock needs a helper of this Python: {problem}"
    if filter_program() is None:
        return f"the system calls of this kind of machine ({os.uname().machine}) are not known"
    return _tried(account)


def _confines_signals(found: int, account: Account | None) -> bool:
    """:returns: whether programs can signal no process outside: by the kernel, or as their account has no other."""
    return found >= SIGNALS_CONFINED or (account is not None and account.uid in FREE_UIDS and can_switch())


@cache
def _tried(account: Account | None) -> str | None:
    sweep(tempfile.gettempdir())
    trial, script = Sandbox(account=account, cwd="/"), "! cat /proc/1/status >/dev/null 2>&1"
    try:
        with opened(inputs(trial)) as descriptors:
            line, given = command(["/bin/sh", "-c", script], descriptors), tuple(descriptors.values())
            done = bounded.run(line, Bounds(PROBE_SECONDS), descriptors=given)
    except (OSError, Unfinished) as e:
        return f"Landlock cannot be used: {e}"
    if done.status == 0:
        return None
    return f"Landlock does not work here: {done.errors.decode(errors='replace').strip() or f'status {done.status}'}"


def inexpressible(sandbox: Sandbox) -> str | None:
    """:returns: what a sandbox has that Landlock cannot give or forbid, in words; ``None`` if nothing."""
    if sandbox.listeners:
        return "Landlock cannot limit the network, so there is none"
    if sandbox.bound:
        return "Landlock cannot give a file another path"
    given = [(path, access) for path, access in sandbox.mounts() if access is not Access.EMPTY]
    for path, access in given:
        if access is Access.READ and any(
            other is Access.WRITE and PurePath(path).is_relative_to(above) for above, other in given
        ):
            return f"Landlock cannot keep {path} from being written in a directory that is given for writing"
        if Path(path).is_socket():
            return f"programs under Landlock reach no UNIX socket, so not {path}"
    for path, _ in sandbox.files:
        if not sandbox.home or not PurePath(path).is_relative_to(sandbox.home):
            return f"Landlock cannot put a file at {path}"
    return None


def inputs(sandbox: Sandbox) -> dict[int, bytes]:
    """:returns: the data that the helper process reads, by descriptor."""
    account, limits, found = sandbox.account, sandbox.limits, version()
    uid = os.geteuid() if account is None else account.uid
    signals = not sandbox.alone and _confines_signals(found, account)
    given = dict(sandbox.mounts())
    order = Order(
        read=(*SYSTEM, *HARMLESS, *(path for path, access in given.items() if access is Access.READ)),
        write=tuple(path for path, access in given.items() if access is Access.WRITE),
        files=tuple(
            (str(PurePath(path).relative_to(sandbox.home)), number)
            for number, (path, _) in enumerate(sandbox.files, FILES_DESCRIPTOR)
        ),
        cwd=sandbox.cwd,
        uid=-1 if account is None else account.uid,
        gid=-1 if account is None else account.gid,
        limits=(
            (resource.RLIMIT_DATA, at_most(limits.memory, resource.RLIMIT_DATA)),
            (resource.RLIMIT_NPROC, at_most(limits.processes + tasks_of(uid), resource.RLIMIT_NPROC)),
            (resource.RLIMIT_NOFILE, at_most(limits.files, resource.RLIMIT_NOFILE)),
            (resource.RLIMIT_FSIZE, at_most(limits.file_size, resource.RLIMIT_FSIZE)),
            (resource.RLIMIT_CORE, 0),
        ),
        calls=filter_program(stricter=lambda machine: stricter(machine, found, not sandbox.alone, signals)) or b"",
        brokered=not sandbox.alone,
        landlock=found,
        temporary="" if sandbox.alone else tempfile.gettempdir(),
    )
    return {start.ORDER_DESCRIPTOR: order.encoded(), **numbered(sandbox)}


def command(argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
    """
    :param argv: the program, an absolute path, and its arguments.
    :param descriptors: replacements for the numbers of the descriptors that :func:`inputs` gives.
    :returns: the command line of the helper process.
    """
    top = str(Path(__file__).resolve().parents[3])
    numbers = [f"{own}={actual}" for own, actual in descriptors.items()]
    return [sys.executable, *start.arguments(top), *numbers, "--", *argv]
