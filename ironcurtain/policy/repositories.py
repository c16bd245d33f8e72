"""
Find the repository that git would work on in a directory, without running git.

What lies in a workspace is the agent's, so files are opened without following links, without waiting, and only up to
a size; and whatever is unusual is a doubt, with which no remote counts as known.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from ironcurtain.policy.gitconfig import GitConfig, MalformedConfig, Setting, parse
from ironcurtain.policy.gitindex import GITLINK, MalformedIndex, gitlinks
from ironcurtain.policy.paths import UnresolvablePath, real_path

SIZE_LIMIT = 1024 * 1024
"""Most bytes of a file of git's that is read: 1 MiB (our choice; configurations have a few thousand)."""

INDEX_LIMIT = 64 * 1024 * 1024
"""Most bytes of an index that is read: 64 MiB (our choice; the Linux kernel's has 9)."""

INCLUDE_LIMIT = 10
"""Most files that include each other (git's own limit)."""

NESTED_LIMIT = 100
"""Most repositories inside a repository whose settings are read for one call (our choice; few have over ten)."""

_HEAD = "ref: refs/heads/"


class _Unreadable(Exception):
    """A file is there, but is nothing that can be read safely."""


@dataclass(frozen=True, slots=True)
class Repository:
    """
    What git would use in a directory.

    :param git_directories: the real paths of git's own directory and of the one that a worktree shares, the last.
    :param others: the real paths of other directories that it would work in.
    :param own: the repository's own settings.
    :param config: the user's settings and then its own.
    :param branch: the current branch, ``None`` if no branch is checked out.
    :param doubts: why it is not certain where its remotes lead.
    :param unread: what of its own settings cannot be read, so that they may say anything.
    :param nested: the working directories of repositories in it (submodules), whose settings git follows as well.
    """

    git_directories: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    own: GitConfig = field(default_factory=lambda: GitConfig(()))
    config: GitConfig = field(default_factory=lambda: GitConfig(()))
    branch: str | None = None
    doubts: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()

    def programs(self) -> list[str]:
        """:returns: what of its own settings runs programs, or may: settings by name, and why some cannot be read."""
        return [*self.own.programs(), *self.unread]

    def hooks(self) -> list[str]:
        """:returns: the names of the hooks that git would run."""
        found = ["core.hooksPath"] if self.own.value("core", None, "hookspath") else []
        for directory in self.git_directories:
            place = f"{directory}/hooks"
            try:
                names = sorted(os.listdir(place))
            except OSError:
                continue
            found += [name for name in names if not name.endswith(".sample") and os.access(f"{place}/{name}", os.X_OK)]
        return found

    def destinations(self, remote: str | None, tool: str) -> tuple[list[str], list[str]]:
        """
        Find where a call would connect to.

        :param remote: what the call says, ``None`` if it names no remote.
        :param tool: its name tells whether data is sent, fetched, or possibly either.
        :returns: the addresses, none if git would find no remote; and why there may be others.
        """
        found: list[str] = []
        doubts: list[str] = []
        for push in _directions(tool):
            name = remote or self.config.default_remote(self.branch, push=push)
            if name is None and self._older_files_know("origin"):
                name = "origin"
            if name is None:
                continue
            found += self.config.addresses(name, push=push)
            doubts += self.doubts
            if self._older_files_know(name):
                doubts.append(f"git's older files speak of {name}")
        return list(dict.fromkeys(found)), list(dict.fromkeys(doubts))

    def _older_files_know(self, remote: str) -> bool:
        """Whether files that git read before version 1.5, and still reads, speak of a remote. We do not read them."""
        places = self.git_directories[-1:] if "/" not in remote and "\0" not in remote else ()
        return any(os.path.lexists(f"{place}/{kind}/{remote}") for place in places for kind in ("remotes", "branches"))


def _directions(tool: str) -> tuple[bool, ...]:
    """:returns: whether a tool pushes; both answers where its name does not tell."""
    if "push" in tool:
        return (True,)
    return (False,) if any(word in tool for word in ("fetch", "pull", "clone")) else (False, True)


class TooManyNested(Exception):
    """A repository has more others in it than are read."""

    def __init__(self) -> None:
        super().__init__(f"the repository has more than {NESTED_LIMIT} submodules")


def with_nested(repository: Repository, home: str) -> Iterator[Repository]:
    """
    :returns: the repository, and those inside it, which git goes into.
    :raises TooManyNested: there are too many.
    """
    seen: set[str] = set()
    left = [repository]
    while left:
        yield (each := left.pop())
        inside = set(each.nested) - seen
        seen |= inside
        if len(seen) > NESTED_LIMIT:
            raise TooManyNested
        left += [open_repository(path, home) for path in sorted(inside)]


def open_repository(directory: str | None, home: str) -> Repository:
    """
    Read what git would read in a directory.

    :param directory: its real path; ``None`` for a call that works in no repository.
    :param home: the user's home, for the user's own settings.
    :returns: without directories if there is no repository.
    """
    doubts: list[str] = []
    settings: list[Setting] = []
    for path in ("/etc/gitconfig", f"{home}/.config/git/config", f"{home}/.gitconfig"):
        settings += _user_settings(path, home, doubts)
    discovered = _discover(directory) if directory is not None else None
    if discovered is None:
        return Repository(config=GitConfig(settings), doubts=tuple(doubts))
    found, tree = discovered
    try:
        return _read(found, tree, settings, doubts)
    except (_Unreadable, UnresolvablePath) as e:
        return Repository((found,), config=GitConfig(settings), doubts=(*doubts, str(e)), unread=(str(e),))


def _read(git_directory: str, tree: str, user: list[Setting], doubts: list[str]) -> Repository:
    common = _common_directory(git_directory)
    unread: list[str] = []
    own = GitConfig(_own_settings(common, git_directory, unread))
    if worktree := own.value("core", None, "worktree"):
        tree = _from(worktree, git_directory)
    nested = _nested(git_directory, tree, own, unread)
    doubts += [*unread, *own.doubts()]
    head = (_read_text(f"{git_directory}/HEAD") or "").strip()
    return Repository(
        tuple(dict.fromkeys((git_directory, common))),
        (tree, *_others(git_directory, common, tree, own)),
        own,
        GitConfig((*user, *own.settings)),
        head.removeprefix(_HEAD) if head.startswith(_HEAD) else None,
        tuple(doubts),
        tuple(unread),
        nested,
    )


def _nested(git_directory: str, tree: str, own: GitConfig, unread: list[str]) -> tuple[str, ...]:
    """:returns: where the index has other repositories; if nobody can say where, that is added to ``unread``."""
    sha256 = own.value("extensions", None, "objectformat") == "sha256"
    try:
        for shared in glob.iglob(f"{glob.escape(git_directory)}/sharedindex.*"):
            if GITLINK in (_read_bytes(shared, INDEX_LIMIT) or b""):
                raise MalformedIndex("it is split; undo that with git update-index --no-split-index")
        paths = gitlinks(_read_bytes(f"{git_directory}/index", INDEX_LIMIT) or b"", sha256=sha256)
    except (_Unreadable, MalformedIndex) as e:
        unread.append(f"{git_directory}/index: {e}")
        return ()
    return tuple(real_path(os.fsdecode(path), tree) for path in paths)


def _others(git_directory: str, common: str, tree: str, own: GitConfig) -> Iterator[str]:
    """:returns: wherever else git would find objects and branches, and the other files that it reads."""
    if git_directory == tree:  # GitPython runs git in the directory that holds a bare repository
        yield os.path.dirname(tree) or "/"
    if named := _read_text(f"{git_directory}/gitdir"):  # and takes this of a worktree's own directory for its place
        yield os.path.dirname(_from(named.strip(), git_directory)) or "/"
    for file in own.files():
        if file.startswith(("~", "%")):
            raise _Unreadable(f"{file}: a setting that names it must have its whole path")
        yield _from(file, tree)
    for name in ("objects", "refs"):
        if (real := real_path(name, common)) != f"{common}/{name}":
            yield real
    for line in (_read_text(f"{common}/objects/info/alternates") or "").splitlines():
        if line and not line.startswith("#"):
            yield _from(line, f"{common}/objects")


def _from(path: str, directory: str) -> str:
    return real_path(path if path.startswith("/") else f"{directory}/{path}")


def _own_settings(common: str, git_directory: str, doubts: list[str]) -> Iterator[Setting]:
    yield from _settings(f"{common}/config", doubts)
    yield from _settings(f"{git_directory}/config.worktree", doubts)  # read by git only if a setting says so


def _settings(path: str, doubts: list[str]) -> tuple[Setting, ...]:
    try:
        return parse(_read_text(path) or "")
    except (_Unreadable, MalformedConfig) as e:
        doubts.append(f"{path} cannot be read: {e}")
        return ()


def _user_settings(path: str, home: str, doubts: list[str], depth: int = 0) -> list[Setting]:
    """The user's own files may be links and may include others."""
    try:
        real = real_path(path)
    except UnresolvablePath as e:
        doubts.append(f"{path}: {e}")
        return []
    found: list[Setting] = []
    for setting in _settings(real, doubts):
        if setting.section in ("include", "includeif") and setting.name == "path" and depth < INCLUDE_LIMIT:
            named = f"{home}{setting.value[1:]}" if setting.value.startswith("~/") else setting.value
            included = named if named.startswith("/") else f"{os.path.dirname(real)}/{named}"
            more = _user_settings(included, home, doubts, depth + 1)
            if setting.section == "includeif":
                doubts += [f"{s.key} holds only sometimes" for s in more if s.section in ("url", "remote", "branch")]
            found += more
        else:
            found.append(setting)
    return found


def _discover(directory: str) -> tuple[str, str] | None:
    """
    :returns: git's own directory for a working directory, here or in the nearest parent that has one; and that parent.
    """
    here = directory
    damaged: tuple[str, str] | None = None
    while True:
        for candidate in _candidates(here):
            if _is_git_directory(candidate):
                return candidate, here
            damaged = damaged or (candidate, here)
        if here in ("", "/"):
            return damaged
        here = here[: here.rfind("/")]


def _candidates(directory: str) -> Iterator[str]:
    """:returns: the real path that ``.git`` stands for, and the directory itself, which may be a bare repository."""
    try:
        dot_git = real_path(".git", directory)
        if os.path.isdir(dot_git):
            yield dot_git
        elif (named := _read_text(dot_git)) is not None and named.startswith("gitdir: "):
            yield _from(named[8:].rstrip("\r\n"), directory)
    except (_Unreadable, UnresolvablePath):
        yield f"{directory}/.git"
    if _is_git_directory(directory):
        yield directory


def _is_git_directory(path: str) -> bool:
    """Whether git takes a directory for its own: if not, it goes on to the next, and so must we."""
    try:
        common = _common_directory(path)
        return _is_head(f"{path}/HEAD") and all(os.access(f"{common}/{name}", os.X_OK) for name in ("objects", "refs"))
    except (_Unreadable, UnresolvablePath):
        return False


def _is_head(path: str) -> bool:
    if os.path.islink(path):
        return os.readlink(path).startswith("refs/")
    head = _read_text(path) or ""
    named = head.startswith("ref:") and head[4:].lstrip(" \t\n\v\f\r").startswith("refs/")
    return named or re.match("[0-9A-Fa-f]{40}", head) is not None


def _common_directory(git_directory: str) -> str:
    """:returns: where a worktree's repository keeps its configuration (gitrepository-layout(5))."""
    named = _read_text(f"{git_directory}/commondir")
    if named is None:
        return git_directory
    return _from(named.rstrip("\r\n"), git_directory)


def _read_text(path: str) -> str | None:
    """:returns: the whole file, ``None`` if there is none."""
    data = _read_bytes(path, SIZE_LIMIT)
    return None if data is None else data.decode(errors="surrogateescape")


def _read_bytes(path: str, limit: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as e:
        raise _Unreadable(f"{path}: {e}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise _Unreadable(f"{path}: no ordinary file of ordinary size")
        return os.read(descriptor, limit + 1)
    finally:
        os.close(descriptor)
