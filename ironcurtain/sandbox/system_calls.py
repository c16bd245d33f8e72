"""
The system calls that no sandboxed program may make, as a filter for seccomp(2).

Namespaces, accounts and missing capabilities already make these calls harmless. The filter also blocks access to their
kernel code, where most sandbox escapes were found.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Callable, Iterable, Iterator
from struct import pack

import msgspec

_DENIED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
"""Numbers of system calls on x86_64 and aarch64 (Linux 6.1, ``asm/unistd_64.h`` and ``asm-generic/unistd.h``)."""

_NEWEST = 466
"""``removexattrat``, of Linux 6.13. Calls of later kernels fail as on an older kernel."""

_X32 = 0x40000000
"""Set in the numbers of the x32 system calls on x86_64, which this filter refuses."""

_NEW_NAMESPACES = 0x7E020000
"""The flags of clone(2) that create namespaces."""

_TERMINAL_INPUT = (0x5412, 0x541C)
"""``TIOCSTI`` and ``TIOCLINUX``, which insert input into a terminal (ioctl_tty(2))."""

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
LOAD, EQUAL, _AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_ARCHITECTURE, _NUMBER, _FIRST, _SECOND, _THIRD = 4, 0, 16, 24, 32


class Machine(msgspec.Struct, frozen=True):
    """
    What is special about a kind of machine.

    :param column: index of its numbers in tables of system calls.
    """

    architecture: int
    column: int
    clone: int
    clone3: int
    socket: int
    ioctl: int


_MACHINES = {
    "x86_64": Machine(0xC000003E, 0, 56, 435, 41, 16),
    "aarch64": Machine(0xC00000B7, 1, 220, 435, 198, 29),
}


def filter_program(
    machine: str = "", stricter: Callable[[Machine], Iterable[bytes]] = lambda machine: ()
) -> bytes | None:
    """
    :param machine: as ``uname -m`` prints it; empty: this one.
    :param stricter: makes further instructions, which are executed first. They find the number of the call loaded, and
        leave it so.
    :returns: the filter, an array of ``struct sock_filter`` (seccomp(2)); ``None`` for a machine with unknown system
        calls.
    """
    known = _MACHINES.get(machine or platform.machine())
    return None if known is None else b"".join(_instructions(known, stricter(known)))


def _instructions(machine: Machine, stricter: Iterable[bytes]) -> Iterator[bytes]:
    yield instruction(LOAD, _ARCHITECTURE)
    yield instruction(EQUAL, machine.architecture, 1, 0)
    yield instruction(RETURN, _KILL)
    yield instruction(LOAD, _NUMBER)
    yield from stricter
    yield from _answer(_AT_LEAST, _X32, errno.EPERM)
    yield from _answer(_AT_LEAST, _NEWEST + 1, errno.ENOSYS)
    for numbers in _DENIED.values():
        if (number := numbers[machine.column]) is not None:
            yield from _answer(EQUAL, number, errno.EPERM)
    # Filters cannot read its flags, which are in memory. C libraries fall back to clone.
    yield from _answer(EQUAL, machine.clone3, errno.ENOSYS)
    yield from _only_for(machine.clone, [instruction(LOAD, _FIRST), *_answer(ANY_BIT, _NEW_NAMESPACES, errno.EPERM)])
    typing = [part for number in _TERMINAL_INPUT for part in _answer(EQUAL, number, errno.EPERM)]
    yield from _only_for(machine.ioctl, [instruction(LOAD, _SECOND), *typing])
    families = [instruction(EQUAL, family, 6 - index, 0) for index, family in enumerate((_UNIX, _INET, _INET6))]
    routing = [instruction(EQUAL, _NETLINK, 0, 2), instruction(LOAD, _THIRD), instruction(EQUAL, 0, 1, 0)]
    refused = instruction(RETURN, FAIL | errno.EAFNOSUPPORT)
    yield from _only_for(machine.socket, [instruction(LOAD, _FIRST), *families, *routing, refused])
    yield instruction(RETURN, _ALLOW)


def instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """:returns: one ``struct sock_filter``; a jump skips so many instructions."""
    return pack("=HBBI", code, if_true, if_false, operand)


def _answer(test: int, operand: int, error: int) -> list[bytes]:
    return [instruction(test, operand, 0, 1), instruction(RETURN, FAIL | error)]


def _only_for(number: int, then: list[bytes]) -> list[bytes]:
    """:returns: instructions that check the arguments of one call, and allow it unless ``then`` decides."""
    return [instruction(EQUAL, number, 0, len(then) + 1), *then, instruction(RETURN, _ALLOW)]


def numbers() -> dict[str, int]:
    """:returns: this machine's numbers of the denied calls and of ``clone``."""
    known = _MACHINES[platform.machine()]
    found = {name: each[known.column] for name, each in _DENIED.items()}
    return {name: number for name, number in {**found, "clone": known.clone}.items() if number is not None}
