"""
Resolve the paths that agents write, following every symbolic link, including dangling ones.

The result is that of :func:`os.path.realpath`, with two differences: a path that cannot be resolved with certainty is
an error, and each component is examined exactly once.
"""

from __future__ import annotations

from os.path import normpath

from ironcurtain.errors import IronCurtainError
from ironcurtain.policy.files import HOST_FILES, FileView
from ironcurtain.policy.pathmap import PathMap

LINK_LIMIT = 40
"""Maximum number of symbolic links in one resolution (the Linux kernel's limit, path_resolution(7))."""

LENGTH_LIMIT = 4096
"""Maximum length of a path in characters (PATH_MAX on Linux; other systems have less)."""


class UnresolvablePath(IronCurtainError):
    """A path cannot be resolved: too many links, too long, or in a directory that this process cannot search."""


class NoPath(UnresolvablePath):
    """The text cannot be a path."""


class ForeignHome(UnresolvablePath):
    """``~name`` is ambiguous: it can be another user's home directory, or a file of that name."""


def real_path(path: str, start: str = "", not_links: set[str] | None = None, files: FileView = HOST_FILES) -> str:
    """
    Resolve a path whose last components need not exist.

    :param path: relative to ``start``, also if it begins with a slash.
    :param start: the real path of a directory, empty for the root.
    :param not_links: a cache of paths known not to be symbolic links, which this function extends. The paths of one
        call share it.
    :param files: tells what is a link.
    :returns: the absolute path, without symbolic links, ``.``, ``..`` or a trailing slash.
    :raises UnresolvablePath: the path cannot be resolved.
    """
    if len(path) > LENGTH_LIMIT:
        raise UnresolvablePath(f"it is longer than {LENGTH_LIMIT} characters")
    resolved, links, missing = start, 0, False
    known = set() if not_links is None else not_links
    rest = path.split("/")
    rest.reverse()
    while rest:
        name = rest.pop()
        if name == "" or name == ".":
            continue
        if name == "..":
            resolved, missing = resolved[: resolved.rfind("/")] if resolved else "", False
            continue
        candidate = f"{resolved}/{name}"
        if missing or candidate in known:
            resolved = candidate
            continue
        target = _link(candidate, files)
        if not target:
            resolved, missing = candidate, target is None
            known.add(candidate)
            continue
        links += 1
        if links > LINK_LIMIT:
            raise UnresolvablePath(f"it has more than {LINK_LIMIT} symbolic links, or a loop of them")
        if target.startswith("/"):
            resolved = ""
        rest.extend(reversed(target.split("/")))
    return resolved or "/"


def _link(path: str, files: FileView) -> str | None:
    try:
        return files.link(path)
    except OSError as e:
        raise UnresolvablePath(f"{path} cannot be read: {e.strerror}") from None
    except ValueError:
        raise NoPath("it has characters that a path cannot contain") from None


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
    Resolves the paths that the agent of one session writes.

    :param paths: the two paths of the workspace.
    :param home: absolute path of the user's home directory (``~``).
    :param files: tells what is a link.
    :raises UnresolvablePath: the workspace or the home directory cannot be resolved.
    """

    __slots__ = ("_named", "_paths", "files", "home", "workspace")

    def __init__(self, paths: PathMap, home: str, files: FileView = HOST_FILES) -> None:
        self._paths, self.files = paths, files
        self._named = f"{paths.host}/"
        self.home = real_path(home, files=files).removesuffix("/")
        self.workspace = Root(real_path(paths.host, files=files))

    def real(self, written: str, not_links: set[str] | None = None, files: FileView | None = None) -> str:
        """
        :param written: a path as the agent wrote it: below ``/workspace``, absolute, from ``~``, or relative.
        :param not_links: as in :func:`real_path`.
        :param files: tells what is a link, if not the files given at the start.
        :returns: the real path on the host.
        :raises UnresolvablePath: the path cannot be resolved; see also the subclasses of this exception.
        """
        if "\0" in written:
            raise NoPath("it contains a NUL character")
        real = self._resolved(self._paths.to_host(written), not_links, files or self.files)
        try:
            real.encode()
        except UnicodeEncodeError:
            raise NoPath("it has characters that cannot be encoded in UTF-8") from None
        return real

    def named(self, written: str) -> str:
        """
        :param written: a path that :meth:`real` accepts.
        :returns: the absolute path on the host without following symbolic links.
        """
        path = self._paths.to_host(written)
        if f"{path}/".startswith(self._named):
            path = self.workspace.path + path[len(self._named) - 1 :]
        elif path.startswith("~"):
            path = self.home + path[1:]
        return normpath(f"/{path.lstrip('/')}")

    def _resolved(self, path: str, not_links: set[str] | None, files: FileView) -> str:
        if path.startswith(self._named):
            return real_path(path[len(self._named) :], self.workspace.path, not_links, files)
        if path.startswith("~"):
            if path[1:2] not in ("", "/"):
                raise ForeignHome("~name is not expanded; write ./~name for a file in the workspace")
            return real_path(path[1:], self.home, not_links, files)
        return real_path(path, "", not_links, files)
