"""
Compare a directory with how it was, by the contents of its files.

The files are an agent's or anybody's: links are never followed, only regular files are opened, and everything has a
limit. A file is read again only if its size, its times or its inode differ, and has changed only if its contents have.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

MOST_DIRECTORIES = 8192
"""Maximum number of directories in a watched tree."""

MOST_FILES = 100_000
"""Maximum number of files in a watched tree; about a second for one look at all."""

WHOLE = 64 * 1024 * 1024
"""Files of more bytes are not read: another size or time of writing means that they have changed."""

MOST_READ = 1024 * 1024 * 1024
"""Number of bytes read in one look; what else has another status is then taken as files over :data:`WHOLE` are."""

BLOCK = 1024 * 1024
"""Number of bytes read at once."""

DEEPEST = 64
"""Maximum depth of directories; deeper ones are not watched."""

IGNORED = frozenset((".git", ".hg", ".svn"))
"""Names of directories whose contents are not watched: programs write there whenever somebody only looks."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Mark(NamedTuple):
    """What is known of a file: with equal ``status`` it is not read again."""

    status: tuple[int, ...]
    digest: str


class Change(NamedTuple):
    """:param kind: ``changed``, ``new`` or ``gone``; ``digest`` of its contents, empty if it is gone."""

    path: str
    kind: str
    digest: str


class Look(msgspec.Struct, frozen=True):
    """
    A tree at one moment.

    :param files: what is not a directory, by its path below the root.
    :param directories: which directories these are, with the root, by their absolute paths: device and inode.
    :param over: which limit was reached, in words; empty: none. Then the rest is missing.
    """

    files: Mapping[str, Mark] = msgspec.field(default_factory=dict)
    directories: Mapping[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    over: str = ""


class Tree(msgspec.Struct, frozen=True):
    """
    :param root: real path of a directory or a file.
    :param matches: returns whether a path below the root is watched, as its names; for a root that is a file, its own.
    :param hidden: real paths of directories whose contents are not watched.
    """

    root: str
    matches: Callable[[tuple[str, ...]], bool] = lambda names: True
    hidden: Collection[str] = ()

    def look(self, before: Look, stopped: Callable[[], bool] = lambda: False) -> Look:
        """
        Look at everything; it blocks.

        :param before: how it was; what is equal to it is not read.
        :param stopped: called often; once true, the result is meaningless.
        """
        files = _Files(before.files)
        directories: dict[str, tuple[int, int]] = {}
        waiting: list[tuple[str, ...]] = [()]
        while waiting and not stopped():
            names = waiting.pop()
            descriptor = self._open(names)
            if descriptor is None:
                continue
            try:
                status = os.fstat(descriptor)
                directories[os.path.join(self.root, *names)] = status.st_dev, status.st_ino
                waiting += self._list(descriptor, names, files, stopped)
            except OSError:  # it was removed meanwhile
                continue
            finally:
                os.close(descriptor)
            if over := _over(len(directories) + len(waiting), len(files.marks)):
                return Look(files.marks, directories, over)
        if not directories:
            self._add_root(files)
        return Look(files.marks, directories)

    def _open(self, names: tuple[str, ...]) -> int | None:
        """:returns: descriptor of a directory below the root, if it is one; links to directories are none."""
        try:
            descriptor = os.open(self.root, _DIRECTORY)
        except OSError:
            return None
        for name in names:
            above = descriptor
            try:
                descriptor = os.open(name, _DIRECTORY, dir_fd=above)
            except OSError:
                return None
            finally:
                os.close(above)
        return descriptor

    def _list(
        self,
        descriptor: int,
        names: tuple[str, ...],
        files: _Files,
        stopped: Callable[[], bool],
    ) -> list[tuple[str, ...]]:
        """:returns: the directories in a directory; its files are added."""
        found = []
        for name in os.listdir(descriptor):
            below = (*names, name)
            if stopped():
                break
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                hidden = name in IGNORED or os.path.join(self.root, *below) in self.hidden
                if not hidden and len(below) <= DEEPEST:
                    found.append(below)
            elif self.matches(below):
                files.add("/".join(below), descriptor, name, status)
        return found

    def _add_root(self, files: _Files) -> None:
        """The root is a file, or nothing."""
        directory, name = os.path.split(self.root)
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                files.add(name, descriptor, name, status)
        except OSError:
            return
        finally:
            os.close(descriptor)


def changes(before: Look, now: Look) -> list[Change]:
    """:returns: what differs in its contents, in the order of the paths. Nothing is gone beyond a limit."""
    found = [
        Change(path, "changed" if path in before.files else "new", mark.digest)
        for path, mark in now.files.items()
        if path not in before.files or before.files[path].digest != mark.digest
    ]
    if not now.over:
        found += [Change(path, "gone", "") for path in before.files.keys() - now.files.keys()]
    return sorted(found)


def digest_of(found: list[Change]) -> str:
    """:returns: SHA-256 of changes: equal for an equal state of the same files."""
    lines = (f"{change.digest} {change.path.encode(errors='surrogateescape').hex()}\n" for change in found)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _over(directories: int, files: int) -> str:
    if directories > MOST_DIRECTORIES:
        return f"has over {MOST_DIRECTORIES:,} directories"
    return f"has over {MOST_FILES:,} files" if files > MOST_FILES else ""


class _Files:
    """
    The files that a look has found.

    :param before: what is known of them.
    """

    def __init__(self, before: Mapping[str, Mark]) -> None:
        self.marks: dict[str, Mark] = {}
        self._before, self._left = before, MOST_READ

    def add(self, path: str, descriptor: int, name: str, found: os.stat_result) -> None:
        """
        :param path: below the root.
        :param descriptor: of its directory.
        """
        status = (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        before = self._before.get(path)
        if before is None or before.status != status:
            before = Mark(status, self._read(descriptor, name, found))
        self.marks[path] = before

    def _read(self, descriptor: int, name: str, found: os.stat_result) -> str:
        if stat.S_ISREG(found.st_mode) and found.st_size <= min(WHOLE, self._left):
            self._left -= found.st_size
            return _contents(descriptor, name)
        if stat.S_ISLNK(found.st_mode):
            return _hash("link", _target(descriptor, name))
        if stat.S_ISREG(found.st_mode):
            return _hash("large", f"{found.st_size} {found.st_mtime_ns}")
        return _hash("other", str(stat.S_IFMT(found.st_mode)))


def _contents(descriptor: int, name: str) -> str:
    hashed, left = hashlib.sha256(), WHOLE
    try:
        with open(os.open(name, _FILE, dir_fd=descriptor), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _hash("other", "")
            while left > 0 and (data := file.read(min(BLOCK, left))):
                hashed.update(data)
                left -= len(data)
    except OSError as e:
        return _hash("unreadable", str(e.errno))
    return hashed.hexdigest()


def _target(descriptor: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=descriptor)
    except OSError:
        return ""


def _hash(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind} {text}".encode(errors="surrogateescape")).hexdigest()
