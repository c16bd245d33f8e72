"""List directories, and everything below them, without following links and within limits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import msgspec

from ironcurtain.servers.files.failures import FileError, explain
from ironcurtain.servers.files.protected import ProtectedFiles
from ironcurtain.servers.files.walk import Place, directory, enter

Kind = Literal["file", "directory", "link", "other"]

VISIT_LIMIT = 100_000
"""Maximum number of entries of one call (about a second of work)."""

DEPTH_LIMIT = 64
"""Maximum depth of directories (one descriptor is open for each)."""


class DirectoryEntry(msgspec.Struct, frozen=True):
    """
    One name in a directory.

    :param size: in bytes; 0 if it is not a regular file.
    """

    name: str
    kind: Kind
    size: int


class Bounds(msgspec.Struct):
    """The remaining limits of one call, and the reasons why something was left out."""

    entries: int = VISIT_LIMIT
    depth: int = DEPTH_LIMIT
    reasons: list[str] = msgspec.field(default_factory=list)

    def cut(self, reason: str) -> None:
        """Record that something was left out."""
        if reason not in self.reasons:
            self.reasons.append(reason)


def entries(descriptor: int, bounds: Bounds, protected: ProtectedFiles) -> list[DirectoryEntry]:
    """
    The entries of an open directory, by name, except protected ones.

    :param bounds: charged for each entry; no more than it allows are returned.
    """
    found: list[DirectoryEntry] = []
    with os.scandir(descriptor) as scan:
        for item in scan:
            if bounds.entries <= 0:
                bounds.cut("there are more entries than one call lists")
                break
            bounds.entries -= 1
            if (entry := _entry(item, protected)) is not None:
                found.append(entry)
    return sorted(found, key=lambda entry: entry.name)


def _entry(item: os.DirEntry[str], protected: ProtectedFiles) -> DirectoryEntry | None:
    try:
        found = item.stat(follow_symlinks=False)
    except OSError:
        return DirectoryEntry(item.name, "other", 0)
    if protected.has(found):
        return None
    if stat.S_ISLNK(found.st_mode):
        return DirectoryEntry(item.name, "link", 0)
    if stat.S_ISDIR(found.st_mode):
        return DirectoryEntry(item.name, "directory", 0)
    return (
        DirectoryEntry(item.name, "file", found.st_size)
        if stat.S_ISREG(found.st_mode)
        else DirectoryEntry(item.name, "other", 0)
    )


def listed(place: Place, bounds: Bounds) -> list[DirectoryEntry]:
    """
    The entries of a directory.

    :raises FileError: it does not exist, is not a directory, or cannot be read.
    """
    with directory(place) as descriptor:
        try:
            found = entries(descriptor, bounds, place.root.protected)
            return [entry for entry in found if not place.below(entry.name).hidden]
        except OSError as e:
            raise explain(e, place.path) from e


Visit = Callable[[tuple[str, ...], DirectoryEntry], bool]
"""Called with each entry, and the names from the start down to it; returns whether to descend into a directory."""


def descend(place: Place, bounds: Bounds, visit: Visit) -> None:
    """
    List everything below a directory, each directory before its contents.

    A directory inside that cannot be opened is left out, which is recorded.

    :raises FileError: as :func:`listed`, for the start directory.
    """
    with directory(place) as descriptor:
        try:
            _descend(descriptor, (), place, bounds, visit)
        except OSError as e:
            raise explain(e, place.path) from e


def _descend(descriptor: int, above: tuple[str, ...], place: Place, bounds: Bounds, visit: Visit) -> None:
    for entry in entries(descriptor, bounds, place.root.protected):
        names = (*above, entry.name)
        if place.below(*names).hidden:
            continue
        if not visit(names, entry) or entry.kind != "directory":
            continue
        if len(names) >= bounds.depth:
            bounds.cut(f"directories are nested over {bounds.depth} deep")
            continue
        with _inside(descriptor, names, place, bounds) as inner:
            if inner is not None:
                _descend(inner, names, place, bounds, visit)


@contextmanager
def _inside(descriptor: int, names: tuple[str, ...], place: Place, bounds: Bounds) -> Iterator[int | None]:
    try:
        inner = enter(descriptor, place.below(*names))
    except FileError:
        bounds.cut("some directories could not be opened")
        yield None
        return
    try:
        yield inner
    finally:
        os.close(inner)
