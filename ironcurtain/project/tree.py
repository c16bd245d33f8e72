"""
Look at everything below a directory that an agent writes to, without following a link or waiting at a pipe.

Directories are listed level by level: what git obeys first, then a project's own files, and those with installed
packages last, so that a limit is spent in this order.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import DIRECTORY, OpenRoot, Place, directory

ENTRIES_LIMIT = 200_000
"""How many files and directories are looked at (a large project with its packages; about 3 s)."""

INSTALLED = frozenset(
    (".gradle", ".tox", ".venv", "__pycache__", "build", "dist", "node_modules", "target", "vendor", "venv")
)
"""Directories that hold what tools put there; they are listed last."""

OPAQUE = frozenset(("objects", "lfs"))
"""Directories of a git repository that are not listed: git checks what it reads there, and runs nothing of it."""


class TreeEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What is at a path.

    :param kind: ``file``, ``directory``, ``link`` or ``other`` (FIFO, socket, device).
    :param mode: permission bits, set-user-id and the like among them.
    :param size: in bytes, of a file.
    :param changed: when it was last changed, contents or status, in nanoseconds (``st_ctime_ns``; programs cannot set
        it), and ``written`` its contents (``st_mtime_ns``).
    :param target: where a link leads.
    :param digest: SHA-256 of the contents in hexadecimal; empty if they were not read.
    :param at: where the contents are kept among the originals; -1: they are not.
    :param listed: whether a directory was looked into.
    """

    kind: str
    mode: int = 0
    size: int = 0
    written: int = 0
    changed: int = 0
    inode: int = 0
    target: str = ""
    digest: str = ""
    at: int = -1
    listed: bool = True

    def same_object(self, other: TreeEntry) -> bool:
        """:returns: whether nothing at all happened to the file between the two looks at it."""
        return self.kind == other.kind and self._marks == other._marks

    @property
    def _marks(self) -> tuple[int, int, int, int, int, str]:
        return (self.mode, self.size, self.written, self.changed, self.inode, self.target)


@dataclass(slots=True)
class Tree:
    """
    A directory, open.

    :param stopped: asked between two entries; once true, the walk ends.
    """

    root: OpenRoot
    stopped: Callable[[], bool] = lambda: False

    def entries(self, limit: int = ENTRIES_LIMIT) -> Iterator[tuple[Place, TreeEntry]]:
        """
        :param limit: how many entries are given; directories beyond it are given once more, unlisted.
        :returns: all that is below the directory but for git's objects, each with its place.
        """
        return self._walk(limit, opaque=True)

    def everything(self) -> Iterator[tuple[Place, TreeEntry]]:
        """:returns: all that is below the directory, each with its place."""
        return self._walk(sys.maxsize, opaque=False)

    def _walk(self, limit: int, *, opaque: bool) -> Iterator[tuple[Place, TreeEntry]]:
        queues = (deque[Place](), deque([Place(self.root, ())]), deque[Place]())
        while (queue := next(filter(None, queues), None)) and not self.stopped():
            place = queue.popleft()
            if limit <= 0:
                yield place, TreeEntry(kind="directory", listed=False)
                continue
            for below, entry in self._list(place):
                limit -= 1
                if entry.kind != "directory" or not entry.listed:
                    yield below, entry
                elif opaque and is_opaque(below.parts):
                    yield below, msgspec.structs.replace(entry, listed=False)
                else:
                    yield below, entry
                    queues[_turn(below.parts)].append(below)

    def _list(self, place: Place) -> Iterator[tuple[Place, TreeEntry]]:
        """What is in a directory; itself, unlisted, if it is gone or a link by now, or must not be listed."""
        try:
            with directory(place) as descriptor:
                for name in sorted(os.listdir(descriptor)):
                    if self.stopped():
                        return
                    with suppress(FileNotFoundError):
                        yield place.below(name), look(descriptor, name)
        except (FileError, OSError):
            if not place.parts:
                raise
            yield place, TreeEntry(kind="directory", listed=False)


def is_opaque(path: tuple[str, ...]) -> bool:
    """:returns: whether a directory is one of git's that are not listed."""
    return path[-1] in OPAQUE and path[-2:-1] == (".git",)


def _turn(path: tuple[str, ...]) -> int:
    names = {name.lower() for name in path}
    if ".git" in names:
        return 2 if OPAQUE & names else 0
    return 2 if INSTALLED & names else 1


def open_tree(path: str, stopped: Callable[[], bool] = lambda: False) -> Tree:
    """
    :param path: real path of a directory.
    :returns: its tree, which :func:`close` closes.
    :raises UsageError: it cannot be opened.
    """
    try:
        return Tree(OpenRoot(path, (path,), os.open(path, DIRECTORY)), stopped)
    except OSError as e:
        raise UsageError(f"the workspace {path} cannot be read: {e.strerror}") from None


def close(tree: Tree) -> None:
    """Give the descriptor back."""
    os.close(tree.root.descriptor)


def look(descriptor: int, name: str) -> TreeEntry:
    """
    :param descriptor: of the directory that holds the name.
    :returns: what is there, links not followed.
    :raises OSError: nothing is.
    """
    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    mode, times = stat.S_IMODE(found.st_mode), (found.st_mtime_ns, found.st_ctime_ns)
    if stat.S_ISREG(found.st_mode):
        return _file(found)
    if stat.S_ISDIR(found.st_mode):
        return TreeEntry(kind="directory", mode=mode)
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(name, dir_fd=descriptor)
        return TreeEntry(kind="link", target=target, written=times[0], changed=times[1], inode=found.st_ino)
    return TreeEntry(kind="other", mode=mode, written=times[0], changed=times[1], inode=found.st_ino)


def _file(found: os.stat_result) -> TreeEntry:
    return TreeEntry(
        kind="file",
        mode=stat.S_IMODE(found.st_mode),
        size=found.st_size,
        written=found.st_mtime_ns,
        changed=found.st_ctime_ns,
        inode=found.st_ino,
    )
