"""What git uses besides the directory that it runs in: the whole tree of a repository, whose root can lie above."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from ironcurtain.command_rules import Places
from ironcurtain.command_rules.effect import Effects
from ironcurtain.commandline import Word


def repository_root(directory: str) -> str:
    """
    :param directory: an absolute path.
    :returns: the root of the repository that git finds from there, with links followed; the directory if there is none.
    """
    path = os.path.realpath(directory)
    while not os.path.lexists(os.path.join(path, ".git")):
        path, before = os.path.dirname(path), path
        if path == before:
            return directory
    return path


def whole_repository(effects: Effects, places: Places, root: Callable[[str], str]) -> Effects:
    """
    :param effects: of one command.
    :param places: has the directories that it can run in.
    :param root: see :func:`repository_root`.
    :returns: them, with the roots of repositories above if all that is in them counts.
    """
    if not effects.repository:
        return effects
    above = tuple(Word.literal(found) for each in places.directories if (found := root(each)) != each)
    reads = (*effects.reads, *above) if effects.reads_trees else effects.reads
    if not effects.lands:
        return replace(effects, reads=reads)
    return replace(effects, reads=reads, writes=(*effects.writes, *above), lands=(*effects.lands, *above))
