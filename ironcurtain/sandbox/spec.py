"""The specification of a sandbox: what a program can access. Other files and processes do not exist for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

import msgspec

from ironcurtain.process.accounts import Account

MEBIBYTE = 1024 * 1024


class Kind(Enum):
    """What implements a sandbox, strongest first."""

    BUBBLEWRAP = "bubblewrap"
    """Namespaces of the kernel, made by the program ``bwrap``."""
    CONTAINER = "container"
    """A container of the Docker Engine."""
    LANDLOCK = "landlock"
    """Access rules of the kernel, where neither of the others can be had; see ``docs/explanation/security.rst``."""


class Access(Enum):
    """Access to a path."""

    READ = "read"
    WRITE = "write"
    EMPTY = "empty"
    """Replaced by an empty directory in memory."""


class SandboxLimits(msgspec.Struct, frozen=True):
    """
    The limits of a sandbox.

    :param memory: bytes of all its processes together, shared memory and files in memory included, where it has a
        cgroup; also of data of each process (``RLIMIT_DATA``). Four gigabytes are more than compilers and Node use.
    :param processes: number of processes and threads of the sandbox.
    :param files: open files of one process.
    :param file_size: bytes of one file.
    :param temporary: bytes of each directory for temporary files, if it is in memory.
    :param data: whether each process's data is limited as well; programs of Bun reserve more than they ever use.
    """

    memory: int = 4096 * MEBIBYTE
    processes: int = 512
    files: int = 4096
    file_size: int = 4096 * MEBIBYTE
    temporary: int = 512 * MEBIBYTE
    data: bool = True


class Listener(msgspec.Struct, frozen=True):
    """
    A socket inside a sandbox's network, which IronCurtain accepts on.

    :param address: any of loopback or of another host, which inside is this socket's.
    :param datagrams: whether it takes UDP rather than TCP.
    """

    address: str
    port: int
    datagrams: bool = False

    def __str__(self) -> str:
        return f"{self.address}/{self.port}/{'udp' if self.datagrams else 'tcp'}"


class Bound(msgspec.Struct, frozen=True):
    """
    A file or directory that has another path in a sandbox; only bubblewrap can do that.

    :param source: its absolute path on this machine; must exist.
    :param target: its absolute path in the sandbox.
    """

    source: str
    target: str
    writable: bool = False


LISTENERS = 250
"""Most listeners of a sandbox; the kernel passes 253 sockets in a message."""


class Sandbox(msgspec.Struct, frozen=True):
    """
    :param read: absolute paths it may read.
    :param write: absolute paths it may read and write.
    :param listeners: all that it can connect to, besides itself: its network is one of its own, with nothing but
        loopback. Whoever starts it gets the listening sockets: see :mod:`ironcurtain.sandbox.handover`.
    :param cwd: its working directory; must be one of those above.
    :param home: its home directory, which is empty except for the paths above; empty for none.
    :param account: the account that it runs as, if not that of this process, which is root then. It can access the
        paths whatever the permissions above them.
    :param bound: further files and directories, which have other paths than here.
    :param files: absolute path and content of read-only files of its own, also in place of the system's; some KiB each.
    :param alone: whether its program starts no other, sends no signals, and changes no permissions.
    :param kind: what must implement it; ``None``: the strongest kind that works.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    listeners: tuple[Listener, ...] = ()
    cwd: str = "/"
    home: str = ""
    account: Account | None = None
    bound: tuple[Bound, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    limits: SandboxLimits = SandboxLimits()
    alone: bool = False
    kind: Kind | None = None

    def mounts(self) -> Iterator[tuple[str, Access]]:
        """
        :returns: each path with its access, directories before their contents; no path with the access that it has by
            the one above it.
        """
        found: dict[str, Access] = {}
        for access, paths in (
            (Access.EMPTY, (self.home,) if self.home else ()),
            (Access.READ, self.read),
            (Access.WRITE, self.write),
            (Access.READ, [each.target for each in self.bound if not each.writable]),
            (Access.WRITE, [each.target for each in self.bound if each.writable]),
        ):
            found |= {path.rstrip("/") or "/": access for path in paths}
        always = {each.target for each in self.bound}
        for path, access in sorted(found.items(), key=lambda item: len(list(directories_above(item[0])))):
            if access is Access.EMPTY or path in always or _around(path, found) is not access:
                yield path, access

    def source(self, path: str) -> str:
        """:returns: where a path of :meth:`mounts` is on this machine."""
        return next((each.source for each in self.bound if each.target == path), path)

    def inner_mount_points(self) -> tuple[str, ...]:
        """
        :returns: the paths below a given one where something else is mounted. An agent may be able to change the
            directories above them while the sandbox is made.
        """
        given = dict(self.mounts())
        paths = (*given, *(path for path, _ in self.files))
        return tuple(path for path in paths if _around(path, given) in (Access.READ, Access.WRITE))

    def outermost(self) -> tuple[str, ...]:
        """:returns: the paths that it may read or write, without those below another."""
        places = [path for path, access in self.mounts() if access in (Access.READ, Access.WRITE)]
        return tuple(path for path in places if not any(path != other and is_below(path, other) for other in places))

    def reaches(self, path: str) -> bool:
        """:returns: whether a path is one of the given ones, or below one; system directories do not count."""
        given = (place for place, access in self.mounts() if access is not Access.EMPTY)
        return any(is_below(path, place) for place in given)


def directories_above(path: str) -> Iterator[str]:
    """:returns: the directories above an absolute path, the nearest one first."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def is_below(path: str, place: str) -> bool:
    """:returns: whether an absolute path is another one, or below it. Sessions wait for hundreds of these questions."""
    return path == place or path.startswith(place if place == "/" else f"{place}/")


def _around(path: str, given: Mapping[str, Access]) -> Access | None:
    """:returns: the access to the nearest given path above a path."""
    return next((given[above] for above in directories_above(path) if above in given), None)
