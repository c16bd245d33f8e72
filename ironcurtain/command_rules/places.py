"""The paths that the words of a command line name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ironcurtain.command_rules.globs import is_vague, names_overlap
from ironcurtain.commandline.model import Match, Word, quoted

Names = tuple[str, ...]
"""An absolute path as the patterns of its names: those of ``/etc/*.conf`` are ``etc`` and ``*.conf``."""

_DEPTH_LIMIT = 32
"""Most names of a path in which links of processes are looked for."""

_CLUSTER_LIMIT = 8
"""Most letters of options, with the dash, that may stand before a path in one word."""

_DESCRIPTORS = re.compile(r"/+(?:\./+)*dev/+(?:\./+)*fd(?=/|$)")

_SEPARATORS = re.compile(r"\\?[=@:,]")

EVERYTHING = frozenset(("*", ".*", "?*", "[^.]*", "[!.]*"))
"""Globs that stand for everything in a directory, or nearly so."""


class Places:
    """
    Turns words into paths, as the shell and the kernel would.

    :param home: absolute path of the user's home directory (``~``).
    :param directories: the directories that relative paths can begin in.
    :param realpath: follows symbolic links, as :func:`os.path.realpath`.
    """

    def __init__(self, home: str, directories: Sequence[str], realpath: Callable[[str], str]) -> None:
        self._home, self._realpath = home, realpath
        self.directories = tuple(directories)
        self._real: dict[str, str] = {}
        self._forms: dict[Word, frozenset[Names]] = {}

    def forms(self, word: Word) -> frozenset[Names]:
        """
        :param word: a path. What is not known in it may be any name.
        :returns: the paths that it can mean: as written, and with symbolic links followed.
        """
        if word not in self._forms:
            paths = self._absolute(word.pattern)
            found = {*map(normal, paths), *map(self._followed, paths)}
            self._forms[word] = frozenset((*found, *(other for path in found for other in self._by_processes(path))))
        return self._forms[word]

    def _by_processes(self, path: Names) -> Iterator[Names]:
        """:returns: the paths that links of processes lead to, as ``/proc/self/root`` and ``/proc/self/cwd``."""
        starts, roots, relative = [0], {0}, set[int]()
        for start in starts:
            if start < len(path) and names_overlap(path[start], "proc"):
                for index, name in enumerate(path[start + 2 : _DEPTH_LIMIT], start + 3):
                    if names_overlap(name, "root") and index not in roots:
                        roots.add(index)
                        starts.append(index)
                    if names_overlap(name, "cwd"):
                        relative.add(index)
        yield from (path[index:] for index in starts[1:])
        for index in relative:
            for directory in self.directories:
                yield (*normal(quoted(directory)), *path[index:])

    def mentioned(self, word: Word) -> Iterator[Names]:
        """:returns: the paths that a word or a part of it can mean, as in ``--file=x``, ``-Ix`` and ``host:x``."""
        if not word.known:
            return
        parts = [word.pattern, *_SEPARATORS.split(word.pattern)]
        if word.pattern.startswith("-"):
            parts += [word.pattern[start:] for start in range(2, min(len(word.pattern), _CLUSTER_LIMIT))]
        for part in dict.fromkeys(parts):
            if part:
                yield from self.forms(Word(part))

    def _absolute(self, pattern: str) -> Sequence[str]:
        if pattern == "~" or pattern.startswith("~/"):
            return (quoted(self._home) + pattern[1:],)
        if pattern.startswith("/"):
            return (pattern, _DESCRIPTORS.sub("/proc/self/fd", pattern))
        return tuple(f"{quoted(directory)}/{pattern}" for directory in self.directories)

    def _followed(self, path: str) -> Names:
        names = path.split("/")
        fixed = next((index for index, name in enumerate(names) if not is_fixed(name)), len(names))
        start = "/".join(Word(name).text for name in names[:fixed]) or "/"
        if start not in self._real:
            try:
                self._real[start] = self._realpath(start)
            except (OSError, ValueError):
                self._real[start] = start
        return normal("/".join((quoted(self._real[start]), *names[fixed:])))


def is_fixed(name: str) -> bool:
    """:returns: whether a pattern has no wildcards."""
    word = Word(name)
    return word.known and not word.is_glob


def is_descriptor(path: Names) -> bool:
    """:returns: whether a path leads through a file that a process has open, which no text shows, or is too long."""
    if not path or not names_overlap(path[0], "proc"):
        return False
    return len(path) > _DEPTH_LIMIT or any(names_overlap(name, "fd") for name in path[2:])


def normal(path: str) -> Names:
    """:returns: the names of an absolute path, without ``.`` and ``..``."""
    found: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del found[-1:]
        elif name not in ("", "."):
            found.append(name)
    return tuple(found)


def shown(names: Names) -> str:
    """:returns: a path for messages and resources."""
    return "/" + "/".join(Word(name).text for name in names)


def reaches(path: Names, root: Names) -> Match:
    """:returns: whether a path is a file or directory or below it; maybe, if a name that is only a wildcard decides."""
    if len(path) < len(root) or not all(map(names_overlap, path, root)):
        return Match.NO
    return Match.MAYBE if any(is_vague(name) for name in path[: len(root)]) else Match.YES


def holds(path: Names, inner: Names) -> bool:
    """:returns: whether a path can be a directory that another one is in. ``*`` at its end means all that is in it."""
    if len(path) < len(inner) and all(map(names_overlap, path, inner)):
        return True
    return bool(path) and path[-1] in EVERYTHING and holds(path[:-1], inner)


class Roots:
    """
    Files and directories, with all that is in them.

    :param paths: their names, without wildcards.
    """

    def __init__(self, paths: Iterable[Names]) -> None:
        self._paths = frozenset(paths)
        self._folded = frozenset(map(_folded, self._paths))

    def reached(self, path: Names) -> Match:
        """:returns: whether a path is one of them or below one."""
        if all(map(is_fixed, path)):
            names = _folded(path)
            return Match.YES if any(names[:length] in self._folded for length in range(len(names) + 1)) else Match.NO
        return max((reaches(path, root) for root in self._paths), default=Match.NO)

    def held(self, path: Names) -> Names | None:
        """:returns: one of them that is in a directory, or in what ``*`` at the end of a path stands for."""
        return next((root for root in self._paths if holds(path, root)), None)


def _folded(path: Names) -> Names:
    return tuple(Word(name).text.casefold() for name in path)
