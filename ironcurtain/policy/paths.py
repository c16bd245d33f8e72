"""
Find the real path behind the name that an agent wrote, following every link, also one that leads nowhere yet.

The result is what :func:`os.path.realpath` would say, but what cannot be resolved for certain is an error here and not
a guess, and each component is looked at exactly once.
"""

from __future__ import annotations

import os
from errno import ENOENT, ENOTDIR
from os.path import normpath
from stat import S_ISLNK

from ironcurtain.errors import IronCurtainError
from ironcurtain.policy.pathmap import PathMap

LINK_LIMIT = 40
"""Most links on the way to one file (the Linux kernel's limit, path_resolution(7))."""

LENGTH_LIMIT = 4096
"""Most characters of a path (PATH_MAX on Linux and more than that of other systems)."""

_NOT_THERE = frozenset((ENOENT, ENOTDIR))


class UnresolvablePath(IronCurtainError):
    """Nobody can say where a path leads: too many links, too long, or in a directory that we may not search."""


class NoPath(UnresolvablePath):
    """The text cannot be the name of any file."""


class ForeignHome(UnresolvablePath):
    """``~name`` may mean another user's home, or a file of that name: never guessed."""


def real_path(path: str, start: str = "", plain: set[str] | None = None) -> str:
    """
    Resolve a path whose last components need not exist.

    :param path: counted from ``start``; slashes at its beginning do not matter.
    :param start: a directory by its real path, empty for the root.
    :param plain: what is known to be no link; what is found out is added, so that paths of one call share it.
    :returns: the absolute path, without links, ``.``, ``..`` or a slash at its end.
    :raises UnresolvablePath: as its docstring says.
    """
    if len(path) > LENGTH_LIMIT:
        raise UnresolvablePath(f"it is longer than {LENGTH_LIMIT} characters")
    here, links, gone = start, 0, False
    known = set() if plain is None else plain
    rest = path.split("/")
    rest.reverse()
    while rest:
        name = rest.pop()
        if name == "" or name == ".":
            continue
        if name == "..":
            here, gone = here[: here.rfind("/")] if here else "", False
            continue
        candidate = f"{here}/{name}"
        if gone or candidate in known:
            here = candidate
            continue
        target = _link(candidate)
        if not target:
            here, gone = candidate, target is None
            known.add(candidate)
            continue
        links += 1
        if links > LINK_LIMIT:
            raise UnresolvablePath(f"it leads through more than {LINK_LIMIT} links, or in a circle")
        if target.startswith("/"):
            here = ""
        rest.extend(reversed(target.split("/")))
    return here or "/"


def _link(path: str) -> str | None:
    """:returns: what a link says, empty for what is no link, ``None`` for what is not there."""
    try:  # lstat first: readlink alone costs an exception, and most components are no links
        return os.readlink(path) if S_ISLNK(os.lstat(path).st_mode) else ""
    except OSError as e:
        if e.errno in _NOT_THERE:
            return None
        raise UnresolvablePath(f"it cannot be looked at: {e.strerror}") from None
    except ValueError:
        raise NoPath("it has characters that no path can have") from None


class Root:
    """
    A directory and everything below it.

    :param path: its real path.
    """

    __slots__ = ("_prefix", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._prefix = path if path == "/" else f"{path}/"

    def holds(self, path: str) -> bool:
        """Whether a real path is the directory or below it."""
        return path.startswith(self._prefix) or path == self.path


class Places:
    """
    What agents' names for files mean in one session.

    :param paths: the workspace under its two names.
    :param home: absolute path of the user's home, which ``~`` means.
    :raises UnresolvablePath: the workspace or the home.
    """

    __slots__ = ("_named", "_paths", "home", "workspace")

    def __init__(self, paths: PathMap, home: str) -> None:
        self._paths = paths
        self._named = f"{paths.host}/"
        self.home = real_path(home).removesuffix("/")
        self.workspace = Root(real_path(paths.host))

    def real(self, written: str, plain: set[str] | None = None) -> str:
        """
        :param written: a path as the agent wrote it: of its workspace, absolute, from ``~``, or relative.
        :param plain: as in :func:`real_path`.
        :returns: the real path on the host.
        :raises UnresolvablePath: see there, and its subclasses.
        """
        if "\0" in written:
            raise NoPath("it has a NUL character")
        real = self._resolved(self._paths.to_host(written), plain)
        try:
            real.encode()
        except UnicodeEncodeError:
            raise NoPath("it has characters that cannot be passed on") from None
        return real

    def named(self, written: str) -> str:
        """
        :param written: a path that has a real one.
        :returns: what that would be if there were no links.
        """
        path = self._paths.to_host(written)
        if f"{path}/".startswith(self._named):
            path = self.workspace.path + path[len(self._named) - 1 :]
        elif path.startswith("~"):
            path = self.home + path[1:]
        return normpath(f"/{path.lstrip('/')}")

    def _resolved(self, path: str, plain: set[str] | None) -> str:
        if path.startswith(self._named):
            return real_path(path[len(self._named) :], self.workspace.path, plain)
        if path.startswith("~"):
            if path[1:2] not in ("", "/"):
                raise ForeignHome("~name is not expanded; write ./~name for a file in the workspace")
            return real_path(path[1:], self.home, plain)
        return real_path(path, "", plain)
