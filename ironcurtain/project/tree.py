"""
List everything below a directory that an agent writes to, without following links or blocking on pipes.

Directories are listed level by level: git's first, then a project's own files, and those with installed packages last,
so that a limit affects the least important ones.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.project.access import LIST, Access
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import DIRECTORY, OpenRoot, Place, directory

ENTRIES_LIMIT = 200_000
"""Maximum number of files and directories (a large project with its packages; about 3 s)."""

DEPTH_LIMIT = 200
"""
Most levels of directories that are listed. Each is opened through all those above it, so that 1500, which take an agent
a moment to make, kept this process busy for a minute; projects with their packages have some thirty.
"""

PACKAGES = frozenset((".tox", ".venv", "__pycache__", "node_modules", "venv"))
"""Directories into which tools install packages, and which nobody keeps in a repository."""

INSTALLED = PACKAGES | {".gradle", "build", "dist", "target", "vendor"}
"""Directories with files that tools generate; they are listed last."""

_OPAQUE = re.compile(r"(?:objects/(?:[0-9a-f]{2}|pack)|lfs)\Z")
"""Directories of a git repository that are not listed: git verifies what it reads there, and runs nothing of it."""


class TreeEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    The entry of a path.

    :param kind: ``file``, ``directory``, ``link`` or ``other`` (FIFO, socket, device).
    :param mode: permission bits, including set-user-id and similar ones.
    :param size: in bytes, of a file.
    :param changed: time of the last change of contents or status, in nanoseconds (``st_ctime_ns``; programs cannot set
        it), and ``written`` of its contents (``st_mtime_ns``).
    :param target: target of a link.
    :param digest: SHA-256 of the contents in hexadecimal; empty if they were not read.
    :param at: position of the contents among the originals; -1: not kept.
    :param listed: whether a directory was listed.
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
        """:returns: whether the file is unchanged between two looks at it."""
        return self.kind == other.kind and self._marks == other._marks

    @property
    def _marks(self) -> tuple[int, int, int, int, int, str]:
        return (self.mode, self.size, self.written, self.changed, self.inode, self.target)


class Tree(msgspec.Struct):
    """
    An open directory.

    :param stopped: called between two entries; once true, the walk ends.
    :param access: gives access to directories that cannot be listed; ``None``: they are not.
    """

    root: OpenRoot
    stopped: Callable[[], bool] = lambda: False
    access: Access | None = None

    @property
    def mode(self) -> int:
        """Permission bits of the directory itself."""
        return self._mode((), stat.S_IMODE(os.fstat(self.root.descriptor).st_mode))

    def entries(self, limit: int = ENTRIES_LIMIT) -> Iterator[tuple[Place, TreeEntry]]:
        """
        :param limit: maximum number of entries; directories beyond it are returned again, unlisted.
        :returns: everything below the directory except git's objects, each with its place; as :meth:`everything`.
        """
        return self._walk(limit, opaque=True)

    def everything(self) -> Iterator[tuple[Place, TreeEntry]]:
        """
        :returns: everything below the directory, each with its place; directories below :data:`DEPTH_LIMIT` others are
            unlisted.
        """
        return self._walk(sys.maxsize, opaque=False)

    def _walk(self, limit: int, *, opaque: bool) -> Iterator[tuple[Place, TreeEntry]]:
        queues = (deque[_Found](), deque([(Place(self.root, ()), TreeEntry(kind="directory"))]), deque[_Found]())
        while (queue := next(filter(None, queues), None)) and not self.stopped():
            place, itself = queue.popleft()
            if limit <= 0:
                yield place, msgspec.structs.replace(itself, listed=False)
                continue
            for below, entry in self._list(place, itself):
                limit -= 1
                if entry.kind != "directory" or not entry.listed:
                    yield below, entry
                elif len(below.parts) >= DEPTH_LIMIT or (opaque and is_opaque(below.parts)):
                    yield below, msgspec.structs.replace(entry, listed=False)
                else:
                    yield below, entry
                    queues[_turn(below.parts)].append((below, entry))

    def _list(self, place: Place, itself: TreeEntry) -> Iterator[_Found]:
        """The entries of a directory; the directory itself, unlisted, if it is gone, a link, or must not be listed."""
        if self.access is not None:
            self.access.give(place.parts, LIST)
        try:
            with directory(place) as descriptor:
                for name in sorted(os.listdir(descriptor)):
                    if self.stopped():
                        return
                    if (below := place.below(name)).hidden:
                        continue
                    with suppress(FileNotFoundError):
                        yield below, self._look(descriptor, below)
        except (FileError, OSError):
            if not place.parts:
                raise
            yield place, msgspec.structs.replace(itself, listed=False)

    def _look(self, descriptor: int, place: Place) -> TreeEntry:
        entry = look(descriptor, place.parts[-1])
        if entry.kind != "directory" or self.access is None:
            return entry
        return msgspec.structs.replace(entry, mode=self._mode(place.parts, entry.mode))

    def _mode(self, path: tuple[str, ...], now: int) -> int:
        return now if self.access is None else self.access.former.get(path, now)


_Found = tuple[Place, TreeEntry]


def is_opaque(path: tuple[str, ...]) -> bool:
    """:returns: whether a directory is one of git's that are not listed."""
    within = path[path.index(".git") + 1 :] if ".git" in path[-3:-1] else ()
    return _OPAQUE.match("/".join(within)) is not None


def _turn(path: tuple[str, ...]) -> int:
    names = {name.lower() for name in path}
    if ".git" in names:
        return 2 if {"objects", "lfs"} & names else 0
    return 2 if INSTALLED & names else 1


def above(path: str) -> Iterator[str]:
    """:returns: the paths of the directories that a path is in, beginning with the workspace's own, which is empty."""
    yield ""
    yield from (path[:at] for at, letter in enumerate(path) if letter == "/")


def open_tree(path: str, stopped: Callable[[], bool] = lambda: False, hidden: Iterable[str] = ()) -> Tree:
    """
    :param path: real path of a directory.
    :param hidden: paths in it that are not listed.
    :returns: its tree; close it with :func:`close`.
    :raises UsageError: it cannot be opened.
    """
    try:
        parts = frozenset(tuple(name.split("/")) for name in hidden)
        return Tree(OpenRoot(path, (path,), os.open(path, DIRECTORY), parts), stopped)
    except PermissionError as e:
        way = f"if it is yours, give yourself access with: chmod u+rwx {shlex.quote(path)}"
        raise UsageError(f"the workspace {path} cannot be read: {e.strerror}; {way}") from None
    except OSError as e:
        raise UsageError(f"the workspace {path} cannot be read: {e.strerror}") from None


def close(tree: Tree) -> None:
    """Close the descriptor."""
    os.close(tree.root.descriptor)


def look(descriptor: int, name: str) -> TreeEntry:
    """
    :param descriptor: descriptor of the parent directory.
    :returns: the entry, without following links.
    :raises OSError: it does not exist.
    """
    found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    mode, times = stat.S_IMODE(found.st_mode), (found.st_mtime_ns, found.st_ctime_ns)
    if stat.S_ISREG(found.st_mode):
        return file_entry(found)
    if stat.S_ISDIR(found.st_mode):
        return TreeEntry(kind="directory", mode=mode)
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(name, dir_fd=descriptor)
        return TreeEntry(kind="link", target=target, written=times[0], changed=times[1], inode=found.st_ino)
    return TreeEntry(kind="other", mode=mode, written=times[0], changed=times[1], inode=found.st_ino)


def file_entry(found: os.stat_result) -> TreeEntry:
    """:returns: the entry of a regular file with this status."""
    return TreeEntry(
        kind="file",
        mode=stat.S_IMODE(found.st_mode),
        size=found.st_size,
        written=found.st_mtime_ns,
        changed=found.st_ctime_ns,
        inode=found.st_ino,
    )
