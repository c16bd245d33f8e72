"""The specification of a sandbox: what a program can access. Other files and processes do not exist for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

from ironcurtain.process.accounts import Account

MEBIBYTE = 1024 * 1024


class Access(Enum):
    """Access to a path."""

    READ = "read"
    WRITE = "write"
    EMPTY = "empty"
    """Replaced by an empty directory in memory."""
    HIDDEN = "hidden"
    """Replaced by something empty: a file for a file and a directory for a directory."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """
    The limits of a sandbox. The memory limit applies to each process, the number of processes to all of them.

    :param memory: bytes of data of one process (``RLIMIT_DATA``); four gigabytes are more than compilers and Node use.
    :param processes: number of processes and threads of the sandbox.
    :param files: open files of one process.
    :param file_size: bytes of one file.
    :param temporary: bytes of the directory for temporary files, which is in memory.
    """

    memory: int = 4096 * MEBIBYTE
    processes: int = 512
    files: int = 4096
    file_size: int = 4096 * MEBIBYTE
    temporary: int = 512 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Sandbox:
    """
    :param read: absolute paths it may read.
    :param write: absolute paths it may read and write.
    :param hidden: absolute paths below those above that it must not see.
    :param network: whether it has the host's network; otherwise it has none.
    :param cwd: its working directory; must be one of those above.
    :param home: its home directory, which is empty except for the paths above; empty for none.
    :param account: the account that it runs as, if not that of this process, which is root then. It can access the
        paths whatever the permissions above them.
    :param files: absolute path and content of read-only files of its own; some KiB each.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    cwd: str = "/"
    home: str = ""
    account: Account | None = None
    files: tuple[tuple[str, bytes], ...] = ()
    limits: SandboxLimits = SandboxLimits()

    def mounts(self) -> Iterator[tuple[str, Access]]:
        """:returns: each path once with its access, directories before their contents."""
        found: dict[str, Access] = {}
        for access, paths in (
            (Access.EMPTY, (self.home,) if self.home else ()),
            (Access.READ, self.read),
            (Access.WRITE, self.write),
            (Access.HIDDEN, self.hidden),
        ):
            found |= {path.rstrip("/") or "/": access for path in paths}
        return iter(sorted(found.items(), key=lambda item: len(PurePath(item[0]).parts)))

    def reaches(self, path: str) -> bool:
        """:returns: whether a path is one of the given ones, or below one; system directories do not count."""
        given = [(PurePath(place), access) for place, access in self.mounts() if access is not Access.EMPTY]
        around = [access for place, access in given if PurePath(path).is_relative_to(place)]
        return bool(around) and around[-1] is not Access.HIDDEN
