"""Which files of a tree decide what git runs there, as git itself finds its repositories."""

from __future__ import annotations

from collections.abc import Collection, Iterator

SETTINGS = frozenset(("config", "config.worktree"))
"""Files of a repository that may name programs."""

DECIDING = SETTINGS | {"hooks", "commondir", "gitdir"}
"""What decides in a repository what git runs, besides ``info/attributes``."""


def is_repository(names: Collection[str]) -> bool:
    """
    :param names: what a directory holds.
    :returns: whether git may take it for a repository, or for what worktrees share of one (that needs no ``HEAD``).
    """
    lower = {name.lower() for name in names}
    return {"objects", "refs"} <= lower or {"head", "commondir"} <= lower


def in_repository(path: str) -> bool:
    """:returns: whether a path is inside a directory that is called as a repository's own."""
    return ".git" in path.lower().split("/")[:-1]


class Repositories:
    """The repositories of a tree of which directory after directory is listed, each before those in it."""

    def __init__(self) -> None:
        self._known: set[tuple[str, ...]] = set()

    def listed(self, directory: tuple[str, ...], names: Collection[str]) -> None:
        """
        :param directory: its path within the tree.
        :param names: what it holds.
        """
        if (directory[-1:] and directory[-1].lower() == ".git") or is_repository(names):
            self._known.add(directory)

    def decides(self, path: tuple[str, ...]) -> bool:
        """
        :param path: of something that is no directory, in one that was listed.
        :returns: whether git runs or obeys what is there.
        """
        return any(_decides(tuple(name.lower() for name in rest)) for rest in self._within(path))

    def contain(self, path: tuple[str, ...]) -> bool:
        """:returns: whether a path is in a repository, or stands for one; a link there stands for any other file."""
        return path[-1].lower() == ".git" or any(self._within(path))

    def _within(self, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        return (path[depth:] for depth in range(len(path)) if path[:depth] in self._known)


def _decides(path: tuple[str, ...]) -> bool:
    if path[0] == "hooks" and path[-1].endswith(".sample"):
        return False
    return path[0] in DECIDING or path[:2] == ("info", "attributes")
