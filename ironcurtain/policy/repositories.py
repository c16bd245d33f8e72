"""
Find the repository that git would work on in a directory, without running git.

What lies in a workspace is the agent's, so files are opened without following links, without waiting, and only up to
a size; and whatever is unusual is a doubt, with which no remote counts as known.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from ironcurtain.policy.gitconfig import GitConfig, MalformedConfig, Setting, parse
from ironcurtain.policy.paths import UnresolvablePath, real_path

SIZE_LIMIT = 1024 * 1024
"""Most bytes of a file of git's that is read: 1 MiB (our choice; configurations have a few thousand)."""

INCLUDE_LIMIT = 10
"""Most files that include each other (git's own limit)."""

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
    """

    git_directories: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    own: GitConfig = field(default_factory=lambda: GitConfig(()))
    config: GitConfig = field(default_factory=lambda: GitConfig(()))
    branch: str | None = None
    doubts: tuple[str, ...] = ()

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
    found = _discover(directory) if directory is not None else None
    if found is None:
        return Repository(config=GitConfig(settings), doubts=tuple(doubts))
    try:
        return _read(found, settings, doubts)
    except (_Unreadable, UnresolvablePath) as e:
        doubts.append(str(e))
        return Repository((found,), config=GitConfig(settings), doubts=tuple(doubts))


def _read(git_directory: str, user: list[Setting], doubts: list[str]) -> Repository:
    common = _common_directory(git_directory)
    own = GitConfig(_own_settings(common, git_directory, doubts))
    doubts += own.doubts()
    head = (_read_text(f"{git_directory}/HEAD") or "").strip()
    return Repository(
        tuple(dict.fromkeys((git_directory, common))),
        tuple(_others(git_directory, common, own)),
        own,
        GitConfig((*user, *own.settings)),
        head.removeprefix(_HEAD) if head.startswith(_HEAD) else None,
        tuple(doubts),
    )


def _others(git_directory: str, common: str, own: GitConfig) -> Iterator[str]:
    """:returns: a work tree elsewhere, and wherever else git would find objects and branches."""
    if worktree := own.value("core", None, "worktree"):
        yield _from(worktree, git_directory)
    for name in ("objects", "refs"):
        if (real := real_path(name, common)) != f"{common}/{name}":
            yield real
    for line in (_read_text(f"{common}/objects/info/alternates") or "").splitlines():
        if line and not line.startswith("#"):
            yield _from(line, f"{common}/objects")


def _from(path: str, directory: str) -> str:
    return real_path(path if path.startswith("/") else f"{directory}/{path}")


def _own_settings(common: str, git_directory: str, doubts: list[str]) -> Iterator[Setting]:
    settings = _settings(f"{common}/config", doubts)
    yield from settings
    if any((s.key, s.value.lower()) == ("extensions.worktreeconfig", "true") for s in settings):
        yield from _settings(f"{git_directory}/config.worktree", doubts)


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


def _discover(directory: str) -> str | None:
    """:returns: git's own directory for a working directory: here or in the nearest parent that has one."""
    here, damaged = directory, None
    while True:
        candidate = _candidate(here)
        if candidate is not None and _is_git_directory(candidate):
            return candidate
        damaged = damaged or candidate
        if here in ("", "/"):
            return damaged
        here = here[: here.rfind("/")]


def _candidate(directory: str) -> str | None:
    """:returns: the real path that ``.git`` stands for, or the directory itself if it is a bare repository."""
    try:
        dot_git = real_path(".git", directory)
        if os.path.isdir(dot_git):
            return dot_git
        named = _read_text(dot_git)
        if named is not None and named.startswith("gitdir: "):
            target = named[8:].rstrip("\r\n")
            return _from(target, directory)
    except (_Unreadable, UnresolvablePath):
        return f"{directory}/.git"
    return directory if _is_git_directory(directory) else None


def _is_git_directory(path: str) -> bool:
    try:
        common = _common_directory(path)
    except (_Unreadable, UnresolvablePath):
        return False
    return os.path.lexists(f"{path}/HEAD") and all(os.path.isdir(f"{common}/{name}") for name in ("objects", "refs"))


def _common_directory(git_directory: str) -> str:
    """:returns: where a worktree's repository keeps its configuration (gitrepository-layout(5))."""
    named = _read_text(f"{git_directory}/commondir")
    if named is None:
        return git_directory
    return _from(named.rstrip("\r\n"), git_directory)


def _read_text(path: str) -> str | None:
    """:returns: the whole file, ``None`` if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as e:
        raise _Unreadable(f"{path}: {e}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > SIZE_LIMIT:
            raise _Unreadable(f"{path}: no ordinary file of ordinary size")
        return os.read(descriptor, SIZE_LIMIT + 1).decode(errors="surrogateescape")
    finally:
        os.close(descriptor)
