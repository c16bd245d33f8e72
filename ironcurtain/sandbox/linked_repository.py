"""
The git repository of a workspace that lies elsewhere: that of a linked worktree, or of a submodule.

``.git`` is a file then, which an agent can rewrite to name any repository. So the repository counts only if it names
the workspace, too, in a place where no agent writes. It is mounted so that git works, but neither its settings and
hooks nor its other worktrees can be changed: git would run them outside.

Of a worktree's repository only the directories that git must write are writable, not the one that contains them. A file
``commondir`` there would make git obey settings in any other place, and a file that is mounted read-only in a writable
directory is so only until somebody outside replaces it, as git does with settings that it changes. A submodule has no
such directories of its own. So git writes in its repository only while a session keeps both from happening, as
:mod:`ironcurtain.sandbox.held_settings` does.

Nothing here runs git. Files are opened relative to their directory, without following links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import PurePath

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.sandbox.held_settings import SUBMODULE, WORKTREE, HeldSettings, are_held
from ironcurtain.sandbox.pieces import all_names, names_in
from ironcurtain.sandbox.repository_files import content_at, give_to_owner, kind_at, line_at, make_file, opened
from ironcurtain.sandbox.spec import is_below
from ironcurtain.text.display import one_line

SETTINGS = {
    "branch.autoSetupMerge": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "rerere.enabled": "false",
    "safe.directory": "*",
}
"""
Settings of git in a sandbox with such a repository. It cannot replace packs, write which branch follows which, as when
switching to a branch of a remote, nor keep resolved conflicts, without which git 2.39 crashes if there is a place for
them. The file ``.git`` can be ours: git refuses what another account owns, but what it obeys inside reaches nothing
outside.
"""

FORGET = 'rm -f "$(git rev-parse --git-path CHERRY_PICK_HEAD)" "$(git rev-parse --git-path REVERT_HEAD)"'
"""
What an agent in a worktree runs after a cherry-pick, revert or rebase. git deletes a reference, and these are two, only
if it can lock the list of packed branches.
"""

REASON_LIMIT = 600
"""Maximum length in characters of the reason why a repository is not used."""

_SHARED = ("objects", "refs", "logs", "reftable", "lfs")
"""What the worktrees of a repository share and git changes: contents, branches and their history."""

_OWN_READ = ("gitdir", "commondir", "config.worktree", *WORKTREE)
"""Files of a worktree's own directory that say which repository and settings it has."""

_SUBMODULE_READ = ("config", "hooks", "worktrees", "config.worktree", *SUBMODULE)

_EXPECTED = {"HEAD": stat.S_IFREG, "config": stat.S_IFREG, "objects": stat.S_IFDIR, "refs": stat.S_IFDIR}


class LinkedRepository(msgspec.Struct, frozen=True):
    """
    :param directory: real path of the repository, outside the workspace.
    :param write: real paths in it where git writes; none: it only reads.
    :param read: real paths below these that are read-only all the same.
    :param backlink: real path of the file in it that names the workspace.
    """

    directory: str
    write: tuple[str, ...]
    read: tuple[str, ...]
    backlink: str

    @property
    def of_submodule(self) -> bool:
        """Whether it is that of a submodule, whose settings name the workspace."""
        return os.path.dirname(self.backlink) == self.directory

    @property
    def advice(self) -> str:
        """What its agent should know, as a line of Markdown; empty if there is nothing."""
        if self.of_submodule:
            return ""
        return (
            "- The files are a linked worktree of a git repository. git cannot delete references here, and says that "
            "it cannot create packed-refs.lock. After a cherry-pick or revert, or a rebase with conflicts, it believes "
            "that it is still in the middle of one, and makes your next commit a part of that: run this before:\n"
            f"  `{FORGET}`. Bisecting, deleting branches and changing git's settings fail.\n"
        )

    def hold(self) -> HeldSettings:
        """
        Keep others from changing settings that are next to what git writes. Only then git can write in a submodule.

        :raises Unavailable: that is not possible now.
        :raises OSError: the repository cannot be written.
        """
        return HeldSettings(os.path.dirname(self.backlink), SUBMODULE if self.of_submodule else WORKTREE)

    def mounts(self, writable: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """
        :param writable: whether git may change anything.
        :returns: the paths to read, and those to read and write. Each exists, and no part of it is a link.
        """
        return ((self.directory, *self.read), self.write) if writable else ((self.directory,), ())

    def files_for(self, places: Sequence[str], own: str) -> dict[str, bytes]:
        """
        :param places: the paths at which git finds the workspace; programs work at the first one.
        :param own: its real path.
        :returns: the files that git needs there instead of the real ones, by path.
        """
        link = f"gitdir: {os.path.dirname(self.backlink)}\n".encode()
        files = {f"{place}/.git": link for place in places}
        if places[0] != own and not self.of_submodule:
            files[self.backlink] = f"{places[0]}/.git\n".encode()
        return files

    def __str__(self) -> str:
        if not self.of_submodule:
            return (
                f"the workspace's git repository is {one_line(self.directory)}: the agent can change its branches and "
                "objects, but not its settings and hooks"
            )
        text = f"the workspace is a submodule, whose repository is {one_line(self.directory)}"
        if not self.write:
            return f"{text}: git only reads it here"
        return (
            f"{text}: nobody can change its settings until the session has ended, and the agent not its hooks; "
            "meanwhile run no git in it or around it, which obeys repositories that the agent makes in the workspace"
        )


def settings_text() -> bytes:
    """:returns: the settings for git in a sandbox with such a repository, for its ``.gitconfig``."""
    parts = ((*name.split("."), value) for name, value in SETTINGS.items())
    return "".join(f"[{section}]\n\t{name} = {value}\n" for section, name, value in parts).encode()


def settings_variables() -> dict[str, str]:
    """:returns: the same as environment variables (git-config(1))."""
    numbered = list(enumerate(SETTINGS.items()))
    names = {f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in numbered}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in numbered}
    return {"GIT_CONFIG_COUNT": str(len(numbered)), **names, **values}


def linked_repository(workspace: str, protected: Iterable[str] = ()) -> LinkedRepository | None:
    """
    Find the repository of a workspace that is a linked worktree or a submodule. What is missing and must be mounted is
    made in it: ``logs`` or ``hooks``, and an empty ``config.worktree``.

    :param workspace: real path of a directory.
    :param protected: absolute paths that no agent may touch.
    :returns: ``None`` if the workspace contains its repository, or is in none.
    :raises UsageError: the repository is elsewhere, and must not be mounted; the message says that git does not work.
    """
    protected = tuple(protected)
    try:
        if (named := _named_in(workspace)) is None:
            _check_above(workspace, protected)
            return None
        directory = os.path.realpath(os.path.join(workspace, named))
        if PurePath(directory).is_relative_to(workspace):
            return None
        return _repository(workspace, directory, protected)
    except (OSError, ValueError) as e:
        why = f"{e.strerror}: {e.filename}" if isinstance(e, OSError) else str(e)
        told = one_line(f"{workspace}/.git: {why}", REASON_LIMIT)
        raise UsageError(
            f"git does not work in sandboxes and containers here, since the repository is outside the workspace: {told}"
        ) from None


def repository_settings(workspace: str, repository: LinkedRepository | None) -> bytes:
    """
    :param workspace: real path of a directory.
    :param repository: its repository, if that is elsewhere.
    :returns: the text of the settings of a workspace's repository, which an agent can have written.
    :raises OSError: there is none, or no plain file.
    :raises ValueError: the file is too large.
    """
    with opened(f"{workspace}/.git" if repository is None else repository.directory) as top:
        return content_at(top, "config")


def _check_above(workspace: str, protected: Iterable[str]) -> None:
    """:raises ValueError: the workspace is a directory of a repository, but not its top."""
    if os.path.lexists(f"{workspace}/.git"):
        return
    names = [str(PurePath(path)) for path in protected]
    for above in map(str, PurePath(workspace).parents):
        if any(is_below(name, above) for name in names):
            return  # such as a home, where a repository is rarely that of the projects in it
        if os.path.lexists(os.path.join(above, ".git")):
            raise ValueError(f"is missing: the workspace is a part of {above}; name that as the workspace")


def _named_in(workspace: str) -> str | None:
    """:returns: the git directory in a file ``.git``; ``None`` if that is a directory, or missing."""
    with opened(workspace) as top:
        if (kind := kind_at(top, ".git")) in (0, stat.S_IFDIR):
            return None
        if kind == stat.S_IFLNK:
            return os.readlink(".git", dir_fd=top)
        text = line_at(top, ".git")
    if not text.startswith("gitdir: "):
        raise ValueError("is neither a directory nor a file of git")
    return text.removeprefix("gitdir: ")


def _repository(workspace: str, directory: str, protected: tuple[str, ...]) -> LinkedRepository:
    with opened(directory) as own:
        common = directory
        if kind_at(own, "commondir"):
            common = os.path.realpath(os.path.join(directory, line_at(own, "commondir")))
        if common == directory:
            back = f"{_work_tree(own, directory)}/.git"
        elif os.path.dirname(directory) == f"{common}/worktrees":
            back = os.path.join(directory, line_at(own, "gitdir"))
        else:
            raise ValueError(f"names {directory}, which is not a worktree of {common}")
    if os.path.realpath(os.path.dirname(back)) != workspace or os.path.basename(back) != ".git":
        raise ValueError(
            f"names {directory}, which does not name this directory in return (after moving a worktree, run 'git "
            "worktree repair')"
        )
    _check_place(workspace, common, protected)
    with opened(common) as top, opened(directory) as own:
        _require(top, common, _EXPECTED)
        made = "hooks" if common == directory else "logs"
        with suppress(FileExistsError):
            os.mkdir(made, dir_fd=top)
            give_to_owner(top, made)
        _require(top, common, {made: stat.S_IFDIR})
        with suppress(FileExistsError):  # an agent that made it would decide what git runs where it is used
            make_file(own, "config.worktree")
        if common == directory:
            read, write = tuple(_guarded(top, common, _SUBMODULE_READ)), (common,) if are_held(top, SUBMODULE) else ()
            return LinkedRepository(common, write, read, f"{common}/config")
        shared = tuple(f"{common}/{name}" for name in _SHARED if kind_at(top, name) == stat.S_IFDIR)
        read = tuple(_guarded(own, directory, _OWN_READ))
    return LinkedRepository(common, (*shared, directory), read, f"{directory}/gitdir")


def _check_place(workspace: str, common: str, protected: Iterable[str]) -> None:
    if PurePath(workspace).is_relative_to(common):
        raise ValueError(f"its repository {common} contains the workspace, and with it other directories")
    names = all_names(protected)
    for path in names:
        if PurePath(common).is_relative_to(path):
            raise ValueError(f"its repository {common} is in {path}, which is protected")
    for path in names_in(common, names):
        raise ValueError(f"its repository {common} contains {path}, which is protected")


def _require(directory: int, path: str, kinds: dict[str, int]) -> None:
    for name, kind in kinds.items():
        if kind_at(directory, name) != kind:
            raise ValueError(f"its repository has something else than expected at {path}/{name}")


def _guarded(directory: int, path: str, names: Iterable[str]) -> Iterator[str]:
    """:returns: the paths of those that exist; none may be a link, which would lead the mount elsewhere."""
    for name in names:
        if (kind := kind_at(directory, name)) in (stat.S_IFREG, stat.S_IFDIR):
            yield f"{path}/{name}"
        elif kind:
            raise ValueError(f"its repository has a link at {path}/{name}")


def _work_tree(directory: int, path: str) -> str:
    """:returns: the work tree that a repository's settings name."""
    from dulwich.config import ConfigFile  # takes 50 ms to load, and few workspaces need it

    try:
        found = ConfigFile.from_file(BytesIO(content_at(directory, "config")), expand_includes=False)
        return os.path.join(path, os.fsdecode(found.get((b"core",), b"worktree")))
    except KeyError:
        raise ValueError(f"names {path}, which does not name this directory in return") from None
