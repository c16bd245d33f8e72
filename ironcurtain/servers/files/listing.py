"""Look into directories, and below them, without following a link and within bounds."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from ironcurtain.servers.files.failures import FileError, explain
from ironcurtain.servers.files.walk import Place, directory, enter

Kind = Literal["file", "directory", "link", "other"]

VISIT_LIMIT = 100_000
"""Most entries that one call looks at (about a second of work)."""

DEPTH_LIMIT = 64
"""How many directories deep a call goes (one descriptor is open for each)."""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """
    One name in a directory.

    :param size: in bytes; 0 for what is no regular file.
    """

    name: str
    kind: Kind
    size: int


@dataclass(slots=True)
class Bounds:
    """How much one call may still look at, and why it left things out, if it did."""

    entries: int = VISIT_LIMIT
    depth: int = DEPTH_LIMIT
    reasons: list[str] = field(default_factory=list)

    def cut(self, reason: str) -> None:
        """Note that something was left out."""
        if reason not in self.reasons:
            self.reasons.append(reason)


def entries(descriptor: int, bounds: Bounds) -> list[DirectoryEntry]:
    """
    What an open directory holds, by name.

    :param bounds: is charged for each entry; no more than it allows are returned.
    """
    found: list[DirectoryEntry] = []
    with os.scandir(descriptor) as scan:
        for item in scan:
            if bounds.entries <= 0:
                bounds.cut("there are more entries than one call looks at")
                break
            bounds.entries -= 1
            found.append(_entry(item))
    return sorted(found, key=lambda entry: entry.name)


def _entry(item: os.DirEntry[str]) -> DirectoryEntry:
    try:
        found = item.stat(follow_symlinks=False)
    except OSError:
        return DirectoryEntry(item.name, "other", 0)
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
    What a directory holds.

    :raises FileError: it is not there, is no directory, or may not be read.
    """
    with directory(place) as descriptor:
        try:
            return [entry for entry in entries(descriptor, bounds) if not place.below(entry.name).hidden]
        except OSError as e:
            raise explain(e, place.path) from e


Visit = Callable[[tuple[str, ...], DirectoryEntry], bool]
"""Is told of each entry, with the names from the start down to it; answers whether to look inside a directory."""


def descend(place: Place, bounds: Bounds, visit: Visit) -> None:
    """
    Look at everything below a directory, each directory before what is in it.

    A directory inside that cannot be opened is left out, and so noted.

    :raises FileError: as :func:`listed`, for the directory to start from.
    """
    with directory(place) as descriptor:
        try:
            _descend(descriptor, (), place, bounds, visit)
        except OSError as e:
            raise explain(e, place.path) from e


def _descend(descriptor: int, above: tuple[str, ...], place: Place, bounds: Bounds, visit: Visit) -> None:
    for entry in entries(descriptor, bounds):
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
        inner = enter(descriptor, names[-1], place.below(*names).path)
    except FileError:
        bounds.cut("some directories could not be opened")
        yield None
        return
    try:
        yield inner
    finally:
        os.close(inner)
