"""
What is data in a git repository: files that git only reads as objects, references, messages and the like.

Everything else there counts as something that git runs or obeys, since what it runs is not a closed list: hooks,
settings, the steps of a rebase, repositories that others are taken from. See gitrepository-layout(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_OBJECTS = re.compile(r"(?:[0-9a-f]{2}|pack)\Z")
"""Directories of objects and packs. Git ignores files in them that have other names, and runs none."""

_HASH = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"

_TOP = re.compile(
    r"(?:HEAD|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD|AUTO_MERGE|BISECT_HEAD"
    r"|packed-refs|index|shallow|description|locked"
    r"|COMMIT_EDITMSG|MERGE_MSG|SQUASH_MSG|TAG_EDITMSG|MERGE_MODE|MERGE_RR"
    rf"|sharedindex\.{_HASH})\Z"
)
"""Files directly in the repository's directory."""

_OBJECTS_INFO = re.compile(rf"(?:packs|commit-graph|commit-graphs/(?:commit-graph-chain|graph-{_HASH}\.graph))\Z")
_INFO = re.compile(r"(?:exclude|refs|sparse-checkout)\Z")
_REFTABLE = re.compile(r"(?:tables\.list|0x[0-9a-f]+-0x[0-9a-f]+-[0-9a-f]+\.ref)\Z")

_TOP_DIRECTORIES = frozenset(
    (
        *("refs", "logs", "objects", "lfs", "reftable", "info", "hooks", "modules", "worktrees", "branches", "remotes"),
        *("rebase-merge", "rebase-apply", "sequencer", "rr-cache", "lost-found", "svn"),
    )
)
"""What a repository's directory can contain that is, or has in it, something else than data."""

_TOP_FILES = frozenset(("config", "config.worktree", "commondir", "gitdir"))


def is_data(path: Sequence[str]) -> bool:
    """
    :param path: names from a repository's directory down to a file.
    :returns: whether git takes the file for nothing but data. Names of references are not checked: git ignores wrong
        ones.
    """
    first, rest = path[0], path[1:]
    if not rest:
        return _TOP.match(first) is not None
    match first:
        case "refs" | "logs":
            return True
        case "objects":
            return _is_object(rest)
        case "lfs":
            return rest[0] in ("objects", "tmp", "incomplete", "cache")
        case "info":
            return len(rest) == 1 and _INFO.match(rest[0]) is not None
        case "reftable":
            return len(rest) == 1 and _REFTABLE.match(rest[0]) is not None
        case "worktrees":
            return len(rest) > 1 and rest[1] != "modules" and is_data(rest[1:])
        case "modules":
            return _is_data_of_module(rest)
    return False


def is_data_of_repositories(path: str) -> bool:
    """
    :param path: path of a file in a tree.
    :returns: whether the file is data in each repository around it, judged by directories called ``.git``. A file in no
        repository is.
    """
    parts = path.split("/")
    inside = (parts[depth + 1 :] for depth, name in enumerate(parts[:-1]) if name.lower() == ".git")
    return all(map(is_data, inside))


def is_sample(path: str) -> bool:
    """:returns: whether a file is an example by its name, which nothing uses (git's templates have some)."""
    return path.lower().endswith(".sample")


def _is_object(path: Sequence[str]) -> bool:
    if _OBJECTS.match(path[0]):
        return len(path) == 2
    return path[0] == "info" and _OBJECTS_INFO.match("/".join(path[1:])) is not None


def _is_data_of_module(path: Sequence[str]) -> bool:
    """
    :param path: names below ``modules``. Those of a submodule come first, which can be several, and whatever the agent
        likes: so every way to read the path must say that it is data.
    """
    found = False
    for depth in range(1, len(path)):
        rest = path[depth:]
        if is_data(rest):
            found = True
        elif rest[0] in (_TOP_DIRECTORIES if len(rest) > 1 else _TOP_FILES):
            return False
    return found
