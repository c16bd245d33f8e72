"""
What a person should look at in a workspace's git repository that is elsewhere: that of a linked worktree or submodule.

Agents cannot change settings and hooks there in their sandboxes. They are compared all the same, since other programs
may have changed them: a server without a sandbox, or a command on the host. And next to a submodule's settings, agents
can leave more that git obeys, such as the steps of a rebase that somebody continues.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ironcurtain.project.changes import Change, Comparison
from ironcurtain.project.planted import SuspectFile, findings
from ironcurtain.project.tree import Tree, open_tree
from ironcurtain.sandbox.linked_repository import LinkedRepository

WATCHED = frozenset(("commondir", "config", "config.worktree", "gitdir", "hooks", "info", "worktrees"))
"""What decides which programs git runs in a worktree; the rest of its repository can be large."""

UNWATCHED = frozenset(("lfs", "logs", "objects", "refs", "reftable"))
"""What is only data in a submodule's repository, and can be large."""

_GIT = ".git/"


def open_repository(repository: LinkedRepository, stopped: Callable[[], bool] = lambda: False) -> Tree:
    """
    :returns: the tree of what is compared; close it with :func:`ironcurtain.project.tree.close`.
    :raises UsageError: it cannot be opened.
    """
    top, own = repository.directory, os.path.dirname(repository.backlink)
    if repository.of_submodule:
        hidden = [name for name in UNWATCHED if name != "objects"]
        hidden += [f"objects/{name}" for name in os.listdir(f"{top}/objects") if name != "info"]
    else:  # other worktrees are written by whoever works there
        hidden = [name for name in os.listdir(top) if name not in WATCHED]
        names = os.listdir(os.path.dirname(own))
        hidden += [f"worktrees/{name}" for name in names if name != os.path.basename(own)]
    return open_tree(top, stopped, hidden)


def repository_findings(comparison: Comparison, directory: str) -> list[SuspectFile]:
    """
    :param directory: the repository, of which the comparison is.
    :returns: what to look at, by absolute path.
    """

    def original(change: Change) -> Change:
        return replace(change, path=change.path.removeprefix(_GIT))

    found = findings(
        [replace(change, path=f"{_GIT}{change.path}") for change in comparison.changes()],
        lambda change: comparison.before(original(change)),
        lambda change: comparison.after(original(change)),
    )
    return [
        msgspec.structs.replace(file, path=f"{directory}/{file.path.removeprefix(_GIT)}")
        for file in found
        if file.path.startswith(_GIT)
    ]
