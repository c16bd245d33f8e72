"""
Wildcards of shell words and of path globs.

A glob is a string as in :class:`~ironcurtain.commandline.model.Word`: ``*``, ``?`` and ``[...]`` are wildcards unless a
backslash precedes them, and an unknown part is a wildcard too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ironcurtain.commandline.model import UNKNOWN

_TOKENS = re.compile(r"\\(.)|(\[[!^]?\]?[^\]/]*\])|(.)", re.DOTALL)

STAR = "*"
ONE = "?"
"""The tokens of wildcards; any other token is a character, with a backslash if it is ``*`` or ``?``."""


@lru_cache(4096)
def tokens(glob: str, exact: bool = False) -> tuple[str, ...]:
    """:returns: a glob as tokens, folded to lower case unless exact: some file systems ignore case."""
    found = []
    for literal, brackets, one in _TOKENS.findall(glob if exact else glob.casefold()):
        if literal:
            found.append(f"\\{literal}" if literal in (STAR, ONE) else literal)
        elif brackets:
            found.append(ONE)
        else:
            found.append(STAR if one in (STAR, UNKNOWN) else one)
    return tuple(found)


@lru_cache(16384)
def overlap(left: str, right: str, exact: bool = False) -> bool:
    """:returns: whether there is a text that both globs match; unless exact, in any case."""
    return _overlap(tokens(left, exact), tokens(right, exact))


def _overlap(left: Sequence[str], right: Sequence[str]) -> bool:
    # Row by row: which beginnings of the right glob can match the same text as this beginning of the left one.
    row = [True]
    for token in right:
        row.append(row[-1] and token == STAR)
    for token in left:
        following = [row[0] and token == STAR]
        for index, other in enumerate(right):
            if STAR in (token, other):
                following.append(row[index + 1] or following[index])
            else:
                following.append(row[index] and (token == other or ONE in (token, other)))
        row = following
    return row[-1]


def names_overlap(left: str, right: str) -> bool:
    """As :func:`overlap`, for the names of files: a wildcard at the beginning does not match a dot."""
    first, other = tokens(left)[:1], tokens(right)[:1]
    if {*first, *other} & {STAR, ONE} and ("." in first or "." in other):
        return False
    return overlap(left, right)


def paths_overlap(glob: Sequence[str], path: Sequence[str]) -> bool:
    """
    :param glob: the names of a glob; ``**`` stands for any number of names.
    :param path: the names of a path, which may have wildcards as well.
    :returns: whether both can name the same file.
    """
    return len(glob) in _reached(glob, path)


def paths_hold(glob: Sequence[str], path: Sequence[str]) -> bool:
    """
    :param glob: as for :func:`paths_overlap`.
    :param path: as for :func:`paths_overlap`.
    :returns: whether the glob can name a file below the path.
    """
    return any(index < len(glob) or glob[-1:] == ("**",) for index in _reached(glob, path))


def _reached(glob: Sequence[str], path: Sequence[str]) -> set[int]:
    """:returns: how much of the glob can stand for the path."""
    reached = {0}
    for name in path:
        following = set()
        for index in _after_stars(glob, reached):
            if index < len(glob) and glob[index] == "**":
                following.add(index)
            elif index < len(glob) and names_overlap(glob[index], name):
                following.add(index + 1)
        reached = following
    return _after_stars(glob, reached)


def _after_stars(glob: Sequence[str], reached: set[int]) -> set[int]:
    found = set(reached)
    for index in sorted(reached):
        while index < len(glob) and glob[index] == "**":
            index += 1
            found.add(index)
    return found


def can_be_others(path: Sequence[str]) -> bool:
    """:returns: whether wildcards of a path can stand for many names, and do not only spell one (``shado?``)."""
    return any(STAR in tokens(name) for name in path)


def is_vague(name: str) -> bool:
    """:returns: whether a name has nothing but wildcards."""
    return not set(tokens(name)) - {STAR, ONE}


def paths_cover(glob: Sequence[str], path: Sequence[str]) -> bool:
    """
    :param glob: the names of a glob; ``**`` stands for any number of names.
    :param path: the names of a path.
    :returns: whether the glob matches whatever the path can name.
    """
    reached = {0}
    for name in path:
        reached = {
            index if glob[index] == "**" else index + 1
            for index in _after_stars(glob, reached)
            if index < len(glob) and _covers(glob[index], name)
        }
    return len(glob) in _after_stars(glob, reached)


def _covers(glob: str, name: str) -> bool:
    if glob in ("**", name):
        return True
    if {STAR, ONE} & set(tokens(name)):
        return glob == STAR and tokens(name)[0] != "."
    hidden = tokens(name)[:1] == (".",) and tokens(glob)[:1] != (".",)
    return not hidden and overlap(glob, name, exact=True)
