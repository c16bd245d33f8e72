"""
Try what Landlock alone permits: ``attacks.py FILE PID DIRECTORY``, a file outside, a process outside, a readable
directory. Prints the name of each attempt that did not fail.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial

if sys.platform != "linux":
    sys.exit("Landlock is a part of Linux")

OUTSIDE, VICTIM, READABLE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
FDCWD, EMPTY_PATH, NO_FOLLOW = -100, 0x1000, 0x100


def call(x86: int | None, other: int | None, *words: int | bytes | None) -> int:
    number = x86 if X86 else other
    if number is None:
        raise OSError("no such call here")
    result = int(LIBC.syscall(ctypes.c_long(number), *[ctypes.c_long(w) if isinstance(w, int) else w for w in words]))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def o_path(path: str) -> int:
    return os.open(path, os.O_PATH)


def linked() -> str:
    with contextlib.suppress(FileExistsError):
        os.symlink(OUTSIDE, "link")
    with contextlib.suppress(FileExistsError):
        os.symlink(os.path.dirname(OUTSIDE), "place")
    return "link"


def relative() -> str:
    return os.path.relpath(OUTSIDE)


def in_outside(act: Callable[[], object]) -> None:
    before = os.getcwd()
    os.chdir(os.path.dirname(OUTSIDE))
    try:
        act()
    finally:
        os.chdir(before)


def opened_readable() -> int:
    return os.open(f"{READABLE}/file", os.O_RDONLY)


def special_file() -> None:
    os.umask(0)
    os.close(os.open("special", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o4755))


def message_queue() -> None:
    call(68, 186, 0x1234, 0o1666)


def pair(kind: int) -> None:
    for one in socket.socketpair(socket.AF_UNIX, kind):
        one.close()


NAME = OUTSIDE.encode()
TIMES = (ctypes.c_long * 4)(5, 0, 5, 0)
ADDRESS = ctypes.addressof(TIMES)

ATTEMPTS: dict[str, Callable[[], object]] = {
    "chmod": lambda: os.chmod(OUTSIDE, 0o777),
    "chmod through a link": lambda: os.chmod(linked(), 0o777),
    "chmod through a linked directory": lambda: os.chmod(f"{linked() and 'place'}/{os.path.basename(OUTSIDE)}", 0o777),
    "chmod by a relative path": lambda: os.chmod(relative(), 0o777),
    "chmod from the directory outside": lambda: in_outside(lambda: os.chmod(os.path.basename(OUTSIDE), 0o777)),
    "chmod by /proc": lambda: os.chmod(f"/proc/self/fd/{o_path(OUTSIDE)}", 0o777),
    "chmod by /proc/thread-self": lambda: os.chmod(f"/proc/thread-self/fd/{o_path(OUTSIDE)}", 0o777),
    "fchmod of an O_PATH descriptor": lambda: os.fchmod(o_path(OUTSIDE), 0o777),
    "fchmod of a readable file": lambda: os.fchmod(opened_readable(), 0o777),
    "fchmodat of a directory descriptor": lambda: call(
        268, 53, o_path(os.path.dirname(OUTSIDE)), os.path.basename(NAME), 0o777
    ),
    "fchmodat2": lambda: call(452, 452, FDCWD, NAME, 0o777, 0),
    "fchmodat2 of a descriptor": lambda: call(452, 452, o_path(OUTSIDE), b"", 0o777, EMPTY_PATH),
    "chmod, the old call": lambda: call(90, None, NAME, 0o777),
    "chown": lambda: os.chown(OUTSIDE, os.getuid(), os.getgid()),
    "chown to somebody else": lambda: os.chown("file", 1, 1),
    "lchown": lambda: os.lchown(OUTSIDE, os.getuid(), -1),
    "fchown": lambda: os.fchown(opened_readable(), os.getuid(), -1),
    "fchownat of a descriptor": lambda: call(260, 54, o_path(OUTSIDE), b"", os.getuid(), os.getgid(), EMPTY_PATH),
    "utime": lambda: os.utime(OUTSIDE),
    "utime of a readable file": lambda: os.utime(opened_readable(), (5, 5)),
    "utime through a link": lambda: os.utime(linked(), (5, 5)),
    "utimensat of a descriptor": lambda: call(280, 88, o_path(OUTSIDE), b"", ADDRESS, EMPTY_PATH),
    "utimensat of nothing": lambda: call(280, 88, o_path(OUTSIDE), None, ADDRESS, 0),
    "utimes": lambda: call(235, None, NAME, ADDRESS),
    "utime, the old call": lambda: call(132, None, NAME, ADDRESS),
    "futimesat": lambda: call(261, None, FDCWD, NAME, ADDRESS),
    "path at the end of memory": lambda: call(268, 53, FDCWD, 2**47 - 4096, 0o777),
    "path in the kernel's memory": lambda: call(268, 53, FDCWD, -4096, 0o777),
    "setxattr": lambda: os.setxattr(OUTSIDE, "user.x", b"x"),
    "fsetxattr": lambda: os.setxattr(opened_readable(), "user.x", b"x"),
    "getxattr": lambda: os.getxattr(OUTSIDE, "user.x"),
    "truncate": lambda: os.truncate(OUTSIDE, 0),
    "truncate a readable file": lambda: os.truncate(f"{READABLE}/file", 0),
    "open a readable file with O_TRUNC": lambda: os.open(f"{READABLE}/file", os.O_RDONLY | os.O_TRUNC),
    "openat2": lambda: call(437, 437, FDCWD, b"file", bytes(24), 24),
    "make a set-user-id file": special_file,
    "make a set-user-id file by mknod": lambda: os.mknod("special", 0o104755),
    "chmod a file to set-user-id": lambda: os.chmod("file", 0o4755),
    "fchmod a file to set-group-id": lambda: os.fchmod(os.open("file", os.O_RDWR), 0o2755),
    "flags of a readable file": lambda: fcntl.ioctl(opened_readable(), 0x40086602, b"\x40\0\0\0\0\0\0\0"),
    "signal by F_SETOWN": lambda: fcntl.fcntl(os.pipe()[0], 8, VICTIM),
    "signal by FIOSETOWN": lambda: fcntl.ioctl(os.pipe()[0], 0x8901, VICTIM.to_bytes(4, "little")),
    "lease on a file": lambda: fcntl.fcntl(opened_readable(), 1024, fcntl.F_RDLCK),
    "watch a directory outside": lambda: call(254, 27, LIBC.inotify_init(), os.path.dirname(NAME), 0xFFF),
    "kill": lambda: os.kill(VICTIM, signal.SIGTERM),
    "kill by pidfd": lambda: signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGTERM),
    "queue a signal": lambda: call(129, 138, VICTIM, 15, bytes(128)),
    "kill the parent": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "limits of another process": lambda: resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (8, 8)),
    "read another's limits": lambda: resource.prlimit(VICTIM, resource.RLIMIT_NOFILE),
    "own mark": lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (1, 1)),
    "own mark, the old call": lambda: call(160, 164, int(resource.RLIMIT_RTTIME), bytes(16)),
    "priority of another process": lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19),
    "priority of the account": lambda: os.setpriority(os.PRIO_USER, 0, 19),
    "affinity of another process": lambda: os.sched_setaffinity(VICTIM, {0}),
    "scheduler of another process": lambda: os.sched_setscheduler(VICTIM, os.SCHED_BATCH, os.sched_param(0)),
    "I/O priority of another process": lambda: call(251, 30, 1, VICTIM, 3 << 13),
    "I/O priority of the account": lambda: call(251, 30, 3, 0, 3 << 13),
    "memory of another process": lambda: open(f"/proc/{VICTIM}/mem", "rb").close(),
    "command line of another process": lambda: open(f"/proc/{VICTIM}/cmdline", "rb").close(),
    "message queue": message_queue,
    "shared memory": lambda: call(29, 194, 0, 4096, 0o1600),
    "remove shared memory": lambda: call(31, 195, 0, 0, 0),
    "semaphore": lambda: call(64, 190, 0, 1, 0o1600),
    "POSIX queue": lambda: call(240, 180, b"x", os.O_CREAT, 0o600, None),
    "datagram pair": lambda: pair(socket.SOCK_DGRAM),
    "datagram pair with a flag": lambda: pair(socket.SOCK_DGRAM | socket.SOCK_CLOEXEC),
    "namespace": lambda: call(272, 97, 0x10000000),
    "io_uring": lambda: call(425, 425, 1, bytes(120)),
    **{
        f"socket of family {family}, type {kind}": partial(socket.socket, family, kind)
        for family in (1, 2, 10, 16, 17, 40)
        for kind in (1, 2, 3)
    },
}

for name, attempt in ATTEMPTS.items():
    try:
        attempt()
    except (OSError, ValueError):  # Python raises the latter for some limits
        continue
    print(name)

pair(socket.SOCK_STREAM)
pair(socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
resource.getrlimit(resource.RLIMIT_RTTIME)
os.sched_setaffinity(0, os.sched_getaffinity(0))
