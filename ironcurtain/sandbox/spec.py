"""What a sandboxed program may reach. All else of the file system, and other processes, do not exist for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

from ironcurtain.process.accounts import Account

MEBIBYTE = 1024 * 1024


class Access(Enum):
    """What a program may do with a path."""

    READ = "read"
    WRITE = "write"
    EMPTY = "empty"
    """There is an empty directory of its own in its place, in memory."""
    HIDDEN = "hidden"
    """There is something empty in its place, a file for a file and a directory for a directory."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """
    What a sandbox may use. Each process is held to its own share of memory, all together to the number of processes.

    :param memory: bytes of data of one process (``RLIMIT_DATA``); four gigabytes are more than compilers and Node take.
    :param processes: and threads, of the whole sandbox.
    :param files: that one process has open.
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
    :param network: whether it has the host's network; without, it has none at all.
    :param cwd: the directory it starts in; must be one of those above.
    :param home: its home directory, which is empty but for the paths above; empty for none.
    :param account: as whom it runs, if not as we; we are root then. The paths are given to it whatever lies above them.
    :param files: absolute path and content of files that are there for it alone, to be read; some KiB each.
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
        """:returns: each path once and what may be done with it, a directory before what lies in it."""
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
        """:returns: whether a path is among those given, or below one of them; system directories do not count."""
        given = [(PurePath(place), access) for place, access in self.mounts() if access is not Access.EMPTY]
        around = [access for place, access in given if PurePath(path).is_relative_to(place)]
        return bool(around) and around[-1] is not Access.HIDDEN
