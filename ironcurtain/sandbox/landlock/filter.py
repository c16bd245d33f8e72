"""
The filter of system calls for what Landlock does not cover, besides the calls that no sandboxed program may make.

Where the kernel's rules do not reach, the arguments are looked at: a process id must be 0, which is the caller itself;
a new file must not be set-user-id. Sockets are refused altogether, as a path or an address in memory cannot be seen.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence

from ironcurtain.platform.processes import MARK_RESOURCE
from ironcurtain.sandbox.landlock.broker import CALLS, SPECIAL_MODE
from ironcurtain.sandbox.system_calls import ANY_BIT, EQUAL, FAIL, LOAD, RETURN, Machine, instruction

_AND, _HAND_OVER = 0x54, 0x7FC00000
_NUMBER = 0
_O_CREAT, _O_TRUNC, _O_TMPFILE, _O_ACCESS = 0o100, 0o1000, 0o20000000, 0o3
_UNIX, _STREAM, _SEQPACKET, _KINDS = 1, 1, 5, 15

_REFUSED = {
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "migrate_pages": (256, 238),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "inotify_add_watch": (254, 27),
}
"""Queues, semaphores and memory that all programs of an account share, and notices of what happens in any directory."""

_MISSING = {"openat2": (437, 437)}
"""Fails as on an older kernel: its flags are in memory, which a filter cannot read. Programs then use ``openat``."""

_ATTRIBUTES = {
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "getxattr": (191, 8),
    "getxattrat": (464, 464),
    "lgetxattr": (192, 9),
    "listxattr": (194, 11),
    "listxattrat": (465, 465),
    "llistxattr": (195, 12),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
}
"""Extended attributes; they fail as on a file system that has none."""

_SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}

_OF_ITSELF = (
    ((203, 122), (0,)),  # sched_setaffinity
    ((142, 118), (0,)),  # sched_setparam
    ((144, 119), (0,)),  # sched_setscheduler
    ((314, 274), (0,)),  # sched_setattr
    ((302, 261), (0,)),  # prlimit64
    ((141, 140), (0, 1)),  # setpriority: a process, not a group or an account
)
"""Calls whose arguments with these indices must be 0, so that they concern the caller alone."""

_IOPRIO_SET, _SETRLIMIT, _PRLIMIT, _TRUNCATE = (251, 30), (160, 164), (302, 261), (76, 45)
_SOCKET, _SOCKETPAIR, _FCNTL = (41, 198), (53, 199), (72, 25)
_CREATING = (((2, None), 1, 2), ((257, 56), 2, 3))
"""``open`` and ``openat``: indices of their flags and of the mode, which counts only for a new file."""
_WITH_MODE = (((85, None), 1), ((133, None), 1), ((259, 33), 2))
"""``creat``, ``mknod``, ``mknodat``: index of the mode."""

_OWNERS_AND_LEASES = (8, 10, 15, 1024)
"""``F_SETOWN``, ``F_SETSIG``, ``F_SETOWN_EX``: signals to any process; ``F_SETLEASE``: makes others wait for a file."""

_ON_INODES = (0x8901, 0x8902, 0x40086602, 0x401C5820, 0x40087602, 0x40806685, 0x400C6613)
"""
``FIOSETOWN`` and ``SIOCSPGRP``, as above; ``FS_IOC_SETFLAGS``, ``FS_IOC_FSSETXATTR``, ``FS_IOC_SETVERSION``,
``FS_IOC_ENABLE_VERITY`` and ``FS_IOC_SET_ENCRYPTION_POLICY``, which change files that are open for reading only.
"""


def stricter(machine: Machine, landlock: int, brokered: bool, signals: bool) -> Iterator[bytes]:
    """
    :param landlock: the kernel's version of Landlock.
    :param brokered: whether permissions and times are changed by the broker; else these calls are refused.
    :param signals: whether the program may send signals at all, because Landlock confines them.
    :returns: instructions for :func:`~ironcurtain.sandbox.system_calls.filter_program`.
    """
    column = machine.column
    changing = instruction(RETURN, _HAND_OVER) if brokered else instruction(RETURN, FAIL | errno.EPERM)
    for numbers, answer in (
        *((each, instruction(RETURN, FAIL | errno.EPERM)) for each in _REFUSED.values()),
        *((each, instruction(RETURN, FAIL | errno.ENOSYS)) for each in _MISSING.values()),
        *((each, instruction(RETURN, FAIL | errno.EOPNOTSUPP)) for each in _ATTRIBUTES.values()),
        *((each, changing) for each in CALLS.values()),
        *((each, instruction(RETURN, FAIL | errno.EPERM)) for each in (() if signals else _SIGNALS.values())),
        (_SOCKET, instruction(RETURN, FAIL | errno.EACCES)),
        *(((_TRUNCATE, instruction(RETURN, FAIL | errno.EPERM)),) if landlock < 3 else ()),
    ):
        if (number := numbers[column]) is not None:
            yield from (instruction(EQUAL, number, 0, 1), answer)
    for numbers, indices in _OF_ITSELF:
        yield from _for(numbers[column], _unless_zero(indices))
    yield from _for(_IOPRIO_SET[column], [*_unless_equal(0, 1), *_unless_zero((1,))])
    yield from _for(_SETRLIMIT[column], _if_equal(0, (MARK_RESOURCE,)))
    yield from _for(_PRLIMIT[column], _mark_unchanged())
    yield from _for(_SOCKETPAIR[column], [*_unless_equal(0, _UNIX), *_unless_stream()])
    yield from _for(_FCNTL[column], _if_equal(1, _OWNERS_AND_LEASES))
    yield from _for(machine.ioctl, _if_equal(1, _ON_INODES))
    for numbers, flags, mode in _CREATING:
        checks = [*_if_creating(flags, mode), *(_if_truncating(flags) if landlock < 3 else ())]
        yield from _for(numbers[column], checks)
    for numbers, mode in _WITH_MODE:
        yield from _for(numbers[column], _if_any_bit(mode, SPECIAL_MODE))


def _argument(index: int, high: bool = False) -> bytes:
    """:returns: the instruction that loads an argument's lower half, or the upper one."""
    return instruction(LOAD, 16 + 8 * index + (4 if high else 0))


_REFUSE = instruction(RETURN, FAIL | errno.EPERM)


def _for(number: int | None, checks: Sequence[bytes]) -> Iterable[bytes]:
    """:returns: checks of one call, after which its number is loaded again."""
    return (
        () if number is None else (instruction(EQUAL, number, 0, len(checks) + 1), *checks, instruction(LOAD, _NUMBER))
    )


def _unless_zero(indices: Sequence[int]) -> list[bytes]:
    return [part for index in indices for part in _unless_equal(index, 0)]


def _unless_equal(index: int, value: int) -> list[bytes]:
    return [_argument(index), instruction(EQUAL, value, 1, 0), _REFUSE]


def _if_equal(index: int, values: Sequence[int]) -> list[bytes]:
    return [_argument(index), *(part for value in values for part in (instruction(EQUAL, value, 0, 1), _REFUSE))]


def _if_any_bit(index: int, bits: int) -> list[bytes]:
    return [_argument(index), instruction(ANY_BIT, bits, 0, 1), _REFUSE]


def _if_creating(flags: int, mode: int) -> list[bytes]:
    checks = _if_any_bit(mode, SPECIAL_MODE)
    return [_argument(flags), instruction(ANY_BIT, _O_CREAT | _O_TMPFILE, 0, len(checks)), *checks]


def _if_truncating(flags: int) -> list[bytes]:
    """Before its third version, Landlock lets a program empty files that it may only read."""
    reading = [_argument(flags), instruction(_AND, _O_ACCESS), instruction(EQUAL, 0, 0, 1), _REFUSE]
    return [_argument(flags), instruction(ANY_BIT, _O_TRUNC, 0, len(reading)), *reading]


def _unless_stream() -> list[bytes]:
    """A datagram socket of a pair can be sent to any path, as sendto(2) takes one."""
    return [
        _argument(1),
        instruction(_AND, _KINDS),
        instruction(EQUAL, _STREAM, 2, 0),
        instruction(EQUAL, _SEQPACKET, 1, 0),
        _REFUSE,
    ]


def _mark_unchanged() -> list[bytes]:
    """Reading the limit is permitted: without a pointer to a new one."""
    new = [
        _argument(2),
        instruction(EQUAL, 0, 1, 0),
        _REFUSE,
        _argument(2, high=True),
        instruction(EQUAL, 0, 1, 0),
        _REFUSE,
    ]
    return [_argument(1), instruction(EQUAL, MARK_RESOURCE, 0, len(new)), *new]
