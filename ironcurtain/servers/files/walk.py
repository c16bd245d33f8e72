"""
Reach files from the descriptors of the allowed directories, and by no other way.

Each component is opened relative to the one before it, with ``O_NOFOLLOW``; so whatever is renamed or linked between
the decision about a call and its execution, the call either touches what lies at that place below the directory, or
fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ironcurtain.errors import Unavailable
from ironcurtain.servers.files.failures import FileError, LinkInPath, explain, shown

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""Flags of every open: a link fails, a FIFO does not block, no child inherits, no terminal becomes ours."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | SAFE


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """
    An allowed directory, open since the start.

    :param path: its real path.
    :param names: the real path, and the path it was given by where that is another one (a link to it).
    :param descriptor: refers to the directory itself, whatever happens to its name.
    :param hidden: the parts, below it, of what is neither listed nor reached.
    """

    path: str
    names: tuple[str, ...]
    descriptor: int
    hidden: frozenset[tuple[str, ...]] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere below a root: ``parts`` are plain names, never empty, ``.`` or ``..``."""

    root: OpenRoot
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The absolute path, for messages."""
        return "/".join((self.root.path.rstrip("/"), *self.parts)) or "/"

    @property
    def hidden(self) -> bool:
        """Whether nothing is to be seen here."""
        return self.parts in self.root.hidden

    def below(self, *names: str) -> Place:
        """The place with these names added."""
        return Place(self.root, (*self.parts, *names))


class Roots:
    """
    The allowed directories.

    :param paths: existing directories; a link is resolved now, once. Relative paths of calls start in the first.
    :param hidden: real paths that do not exist for any call, nor what lies below them.
    :raises Unavailable: one of them is no directory, or cannot be opened.
    """

    def __init__(self, paths: Sequence[str], hidden: Sequence[str] = ()) -> None:
        self.all = tuple(_open_root(path, hidden) for path in paths)

    def close(self) -> None:
        """Give the descriptors back."""
        for root in self.all:
            os.close(root.descriptor)

    def locate(self, path: str) -> Place:
        """
        Find out below which root a path lies, by its text alone.

        ``..`` is taken away textually, which is right because no component may be a link.

        :param path: absolute, or relative to the first root.
        :raises FileError: it is empty, holds a NUL, or lies outside all roots.
        """
        if not path or "\0" in path:
            raise FileError("the path is empty or holds a NUL character")
        absolute = path if path.startswith("/") else f"{self.all[0].path}/{path}"
        parts = _normal(absolute)
        names = [(root, _normal(name)) for root in self.all for name in root.names]
        found = [(root, len(name)) for root, name in names if parts[: len(name)] == name]
        if not found:
            allowed = ", ".join(root.path for root in self.all)
            raise FileError(f"{shown(path)} is outside the allowed directories: {allowed}")
        root, length = max(found, key=lambda pair: pair[1])
        place = Place(root, parts[length:])
        if any(Place(root, place.parts[:depth]).hidden for depth in range(1, len(place.parts) + 1)):
            raise FileError(f"{shown(path)} is protected")
        return place


def _open_root(path: str, hidden: Sequence[str]) -> OpenRoot:
    given = "/" + "/".join(_normal(os.path.join(os.getcwd(), path)))
    real = os.path.realpath(path)
    try:
        descriptor = os.open(real, DIRECTORY)
    except OSError as e:
        raise Unavailable(f"{path}: {e.strerror}; give an existing directory") from e
    top = _normal(real)
    inside = frozenset(parts[len(top) :] for parts in map(_normal, hidden) if parts[: len(top)] == top != parts)
    return OpenRoot(real, tuple(dict.fromkeys((real, given))), descriptor, inside)


def _normal(path: str) -> tuple[str, ...]:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


@contextmanager
def directory(place: Place) -> Iterator[int]:
    """
    Open a directory for the length of a ``with`` block.

    :raises FileError: it is not there, is no directory, or a component is a link.
    """
    current = os.dup(place.root.descriptor)
    try:
        for index, name in enumerate(place.parts):
            following = enter(current, name, Place(place.root, place.parts[: index + 1]).path)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


@contextmanager
def parent(place: Place) -> Iterator[tuple[int, str]]:
    """
    Open the directory that holds a place.

    :returns: its descriptor, and the name in it.
    :raises FileError: as :func:`directory`; or the place is a root, whose parent is none of ours.
    """
    if not place.parts:
        raise FileError(f"{place.path} is an allowed directory itself; name something in it")
    with directory(Place(place.root, place.parts[:-1])) as descriptor:
        yield descriptor, place.parts[-1]


def enter(descriptor: int, name: str, path: str) -> int:
    """
    Open one directory inside another.

    :param path: its whole path, for messages.
    :returns: a descriptor, which the caller closes.
    :raises FileError: as :func:`directory`.
    """
    try:
        return os.open(name, DIRECTORY, dir_fd=descriptor)
    except OSError as e:
        if e.errno in (errno.ENOTDIR, errno.ELOOP) and is_link(descriptor, name):
            raise LinkInPath(path) from e
        raise explain(e, path) from e


def status(descriptor: int, name: str, path: str) -> os.stat_result | None:
    """
    What is at a name, without following it.

    :returns: ``None`` if nothing is.
    :raises FileError: it is a link, or cannot be looked at.
    """
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise explain(e, path) from e
    if stat.S_ISLNK(found.st_mode):
        raise LinkInPath(path)
    return found


def is_link(descriptor: int, name: str) -> bool:
    """Whether a name is a symbolic link now."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_regular(descriptor: int, name: str, path: str, flags: int) -> int:
    """
    Open an existing regular file.

    Looked at before opening, as opening a FIFO or a device can have effects, and once more after.

    :param flags: ``os.O_RDONLY`` or ``os.O_WRONLY``.
    :returns: a descriptor, which the caller closes.
    :raises FileError: there is none, it is a link, or something else than a regular file.
    """
    found = status(descriptor, name, path)
    if found is None:
        raise FileError(f"no such file: {shown(path)}")
    require_regular(found, path)
    try:
        opened = os.open(name, flags | SAFE, dir_fd=descriptor)
    except OSError as e:
        raise LinkInPath(path) if e.errno == errno.ELOOP else explain(e, path) from e
    try:
        require_regular(os.fstat(opened), path)
    except FileError:
        os.close(opened)
        raise
    return opened


def require_regular(found: os.stat_result, path: str) -> None:
    """:raises FileError: it is a directory, FIFO, device or socket."""
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"is a directory, not a file: {shown(path)}")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"is no regular file: {shown(path)}; FIFOs, sockets and devices are refused")
