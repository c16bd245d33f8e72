"""
Open files only relative to the descriptors of the allowed directories.

Each component is opened relative to its parent with ``O_NOFOLLOW``. If something is renamed or linked between the
decision about a call and its execution, the call either acts on the file at that path below the directory, or fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.servers.files.failures import FileError, LinkInPath, explain, shown
from ironcurtain.servers.files.protected import ProtectedFiles

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
"""Flags of every open: links fail, FIFOs do not block, children do not inherit, no controlling terminal."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | SAFE


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """
    An allowed directory, opened at the start.

    :param path: its real path.
    :param names: the real path, and the configured path if that differs (a link to it).
    :param descriptor: open descriptor of the directory, valid even if the directory is renamed.
    :param hidden: relative paths, in parts, that are neither listed nor reachable.
    :param protected: files and directories that are not either, whatever their names.
    """

    path: str
    names: tuple[str, ...]
    descriptor: int
    hidden: frozenset[tuple[str, ...]] = frozenset()
    protected: ProtectedFiles = field(default_factory=ProtectedFiles, compare=False)


class Place(msgspec.Struct, frozen=True):
    """A path below a root. ``parts`` are names, never empty, ``.`` or ``..``."""

    root: OpenRoot
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The absolute path, for messages."""
        return "/".join((self.root.path.rstrip("/"), *self.parts)) or "/"

    @property
    def hidden(self) -> bool:
        """Whether the place is hidden."""
        return self.parts in self.root.hidden

    @property
    def contains_hidden(self) -> bool:
        """Whether a hidden path is below the place, or would be if it existed."""
        return any(path[: len(self.parts)] == self.parts for path in self.root.hidden)

    def check(self, found: os.stat_result) -> None:
        """
        :param found: the status of what is at the place.
        :raises FileError: it is protected.
        """
        self.root.protected.check(found, self.path)

    def below(self, *names: str) -> Place:
        """The place below, with these names appended."""
        return Place(self.root, (*self.parts, *names))


class Roots:
    """
    The allowed directories.

    :param paths: directories. Links are resolved once, now. Relative paths of calls start in the first.
    :param hidden: names, as :class:`~ironcurtain.servers.files.protected.ProtectedFiles` takes them, of what calls
        cannot see, with everything below it.
    :ivar missing: a message about each directory but the first that cannot be opened, such as the home of a service's
        account, which need not exist.
    :raises Unavailable: the first of ``paths`` is not a directory, or cannot be opened.
    """

    def __init__(self, paths: Sequence[str], hidden: Sequence[str] = ()) -> None:
        first, *others = paths
        self._protected = ProtectedFiles(hidden)
        opened, self.missing = [_open_root(first, hidden, self._protected)], list[str]()
        for path in others:
            try:
                opened.append(_open_root(path, hidden, self._protected))
            except Unavailable as e:
                self.missing.append(str(e))
        self.all = tuple(opened)

    def close(self) -> None:
        """Close the descriptors."""
        self._protected.close()
        for root in self.all:
            os.close(root.descriptor)

    def look(self) -> None:
        """Take note of what is at hidden paths now; to be called before each call."""
        self._protected.look()

    def locate(self, path: str) -> Place:
        """
        Find the root of a path, from its text alone.

        ``..`` is removed textually, which is correct because no component may be a link.

        :param path: absolute, or relative to the first root.
        :raises FileError: the path is empty, contains a NUL, or is outside all roots.
        """
        if not path or "\0" in path:
            raise FileError("the path is empty or contains a NUL character")
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


def _open_root(path: str, hidden: Sequence[str], protected: ProtectedFiles) -> OpenRoot:
    given = "/" + "/".join(_normal(os.path.join(os.getcwd(), path)))
    real = os.path.realpath(path)
    try:
        descriptor = os.open(real, DIRECTORY)
    except OSError as e:
        raise Unavailable(f"{path}: {e.strerror}; give an existing directory") from e
    top = _normal(real)
    inside = frozenset(parts[len(top) :] for parts in map(_normal, hidden) if parts[: len(top)] == top != parts)
    return OpenRoot(real, tuple(dict.fromkeys((real, given))), descriptor, inside, protected)


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
    Open a directory for a ``with`` block.

    :raises FileError: it does not exist, is not a directory, is protected, or a component is a link.
    """
    current = os.dup(place.root.descriptor)
    try:
        for index, _ in enumerate(place.parts):
            following = enter(current, Place(place.root, place.parts[: index + 1]))
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


@contextmanager
def parent(place: Place) -> Iterator[tuple[int, str]]:
    """
    Open the parent directory of a place.

    :returns: its descriptor, and the name in it.
    :raises FileError: as :func:`directory`; or the place is a root, whose parent is not allowed.
    """
    if not place.parts:
        raise FileError(f"{place.path} is an allowed directory itself: give a path below it")
    with directory(Place(place.root, place.parts[:-1])) as descriptor:
        yield descriptor, place.parts[-1]


def enter(descriptor: int, place: Place) -> int:
    """
    Open a directory in another directory.

    :param descriptor: of the directory that contains it.
    :returns: a descriptor, which the caller closes.
    :raises FileError: as :func:`directory`.
    """
    name = place.parts[-1]
    try:
        opened = os.open(name, DIRECTORY, dir_fd=descriptor)
    except OSError as e:
        if e.errno in (errno.ENOTDIR, errno.ELOOP) and is_link(descriptor, name):
            raise LinkInPath(place.path) from e
        raise explain(e, place.path) from e
    try:
        place.check(os.fstat(opened))
    except FileError:
        os.close(opened)
        raise
    return opened


def status(descriptor: int, place: Place) -> os.stat_result | None:
    """
    Get the status of a place without following links.

    :param descriptor: of the directory that contains it.
    :returns: the status; ``None`` if there is nothing.
    :raises FileError: it is a link or protected, or its status cannot be read.
    """
    try:
        found = os.stat(place.parts[-1], dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise explain(e, place.path) from e
    if stat.S_ISLNK(found.st_mode):
        raise LinkInPath(place.path)
    place.check(found)
    return found


def is_link(descriptor: int, name: str) -> bool:
    """:returns: whether a name is a symbolic link now."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_regular(descriptor: int, place: Place, flags: int) -> int:
    """
    Open an existing regular file.

    Its type is checked before opening, because opening a FIFO or a device can have effects, and again afterwards.

    :param descriptor: of the directory that contains it.
    :param flags: ``os.O_RDONLY`` or ``os.O_WRONLY``.
    :returns: a descriptor, which the caller closes.
    :raises FileError: it does not exist, is not a regular file, or is protected.
    """
    name, path = place.parts[-1], place.path
    found = status(descriptor, place)
    if found is None:
        raise FileError(f"no such file: {shown(path)}")
    require_regular(found, path)
    try:
        opened = os.open(name, flags | SAFE, dir_fd=descriptor)
    except OSError as e:
        raise LinkInPath(path) if e.errno == errno.ELOOP else explain(e, path) from e
    try:
        found = os.fstat(opened)
        require_regular(found, path)
        place.check(found)
    except FileError:
        os.close(opened)
        raise
    return opened


def require_regular(found: os.stat_result, path: str) -> None:
    """:raises FileError: it is a directory, FIFO, device or socket."""
    if stat.S_ISDIR(found.st_mode):
        raise FileError(f"is a directory, not a file: {shown(path)}")
    if not stat.S_ISREG(found.st_mode):
        raise FileError(f"is not a regular file: {shown(path)}; FIFOs, sockets and devices are refused")
