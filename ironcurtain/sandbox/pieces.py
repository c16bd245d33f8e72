"""
Give a sandbox a directory without the protected paths in it.

A mount over a protected path does not hold: it falls off when somebody replaces the file, and moves along when a
directory above is renamed. So what is protected is not mounted at all. A directory that is only read is given piece by
piece: each of its entries, except those that are protected. One that may be written cannot be, since the pieces would
keep programs from making and renaming files in it; it is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from ironcurtain.errors import Unavailable
from ironcurtain.text.quantities import noun

PIECES_LIMIT = 1000
"""Maximum number of entries that stand for one directory (a home has some dozens)."""

NAMED_LIMIT = 3
"""Maximum number of protected paths that a refusal names."""

_OWN = frozenset(("/proc", "/sys", "/dev"))
"""Every sandbox has its own."""


def all_names(protected: Iterable[str]) -> frozenset[str]:
    """
    :param protected: absolute paths, which need not exist.
    :returns: their names without symbolic links in them: that of the path itself, and of what it leads to.
    """
    found, real = set[str](), dict[str, str]()
    for path in map(os.path.normpath, protected):
        above, name = os.path.split(path)
        if above not in real:  # hundreds of paths lie in a few directories, and a session looks several times
            real[above] = os.path.realpath(above)
        itself = os.path.join(real[above], name)
        found.add(itself)
        if os.path.islink(itself):
            found.add(os.path.realpath(itself))
    return frozenset(found)


def names_in(directory: str, names: Iterable[str]) -> tuple[str, ...]:
    """
    :param directory: a real path.
    :param names: as :func:`all_names` returns them.
    :returns: those of the names that are below it, whether they exist or not.
    """
    above = f"{directory.rstrip('/')}/"  # compared as text, since there are hundreds of names and of directories
    return tuple(sorted(name for name in names if name.startswith(above) and name != above))


def existing(directory: PurePath, names: Iterable[str]) -> tuple[str, ...]:
    """
    :param directory: a real path.
    :param names: those of :func:`names_in`.
    :returns: those that exist, except links that lead out of the directory, where no sandbox can follow them.
    """
    there = filter(os.path.lexists, names)
    return tuple(name for name in there if PurePath(os.path.realpath(name)).is_relative_to(directory))


def check_writable(path: str, names: Iterable[str]) -> None:
    """
    :param path: a directory that a sandbox may write.
    :raises Unavailable: a protected path is in it, or would be if it existed.
    """
    if inside := names_in(os.path.realpath(path), names):
        named = ", ".join(inside[:NAMED_LIMIT]) + (" and more" if len(inside) > NAMED_LIMIT else "")
        are = noun(len(inside), "is", "are")
        raise Unavailable(f"{path} cannot be given for writing, since {named} {are} protected: give directories in it")


def readable_pieces(path: str, names: frozenset[str], whole: str = "") -> Iterator[str]:
    """
    :param path: a file or directory that a sandbox may read.
    :param names: as :func:`all_names` returns them.
    :param whole: a directory that is never divided.
    :returns: what to give instead: the path itself if nothing below it is protected. Symbolic links in a directory that
        is divided are left out, since they can lead to what is protected.
    :raises Unavailable: there are too many.
    """
    real = os.path.realpath(path)
    if real == whole or not names_in(real, names) or not os.path.isdir(real):
        yield path
        return
    pieces = list(_entries(real, names, whole))
    if len(pieces) > PIECES_LIMIT:
        raise Unavailable(
            f"{path} cannot be given for reading, since it contains protected paths and has too many other entries: "
            "give the directories in it that are needed"
        )
    yield from pieces


def _entries(directory: str, names: frozenset[str], whole: str) -> Iterator[str]:
    """:param directory: a real path with a protected name below it."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.path in names or entry.path in _OWN:
            continue
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) and entry.path != whole and names_in(entry.path, names):
            yield from _entries(entry.path, names, whole)
        elif stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            yield entry.path
