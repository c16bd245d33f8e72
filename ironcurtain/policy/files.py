"""What the engine needs to know about files, and who answers: this machine, or a set of assumed files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from errno import ENOENT, ENOTDIR
from functools import cached_property
from typing import Protocol

SETTINGS_LIMIT = 1024 * 1024
"""Maximum size of ``.git/config``: 1 MiB (usual files have about 1 KiB)."""

_MISSING = frozenset((ENOENT, ENOTDIR))


class FileView(Protocol):
    """Answers the engine's questions about files. It may raise an exception of its own for what it does not know."""

    def link(self, path: str) -> str | None:
        """
        :returns: the target of a symbolic link, empty if the path is not one, ``None`` if it does not exist.
        :raises OSError: it cannot be determined.
        :raises ValueError: no file can have this name.
        """

    def exists(self, path: str) -> bool:
        """Whether there is a file, directory or link of this name."""

    def same(self, left: str, right: str) -> bool:
        """Whether two names that differ in case or Unicode form are those of one file. If neither exists, they are."""

    def git_settings(self, repository: str) -> bytes | None:
        """
        :param repository: the real path of a directory.
        :returns: the content of ``.git/config``, read without following links; ``None`` if there is no repository.
        :raises OSError: it cannot be read.
        :raises ValueError: it is not a regular file, or too large.
        """


class HostFiles:
    """The files of this machine, now."""

    def link(self, path: str) -> str | None:
        """See :meth:`FileView.link`."""
        try:  # lstat first: most components are not links, and readlink would raise for each of them
            return os.readlink(path) if stat.S_ISLNK(os.lstat(path).st_mode) else ""
        except OSError as e:
            if e.errno in _MISSING:
                return None
            raise

    def exists(self, path: str) -> bool:
        """See :meth:`FileView.exists`."""
        return os.path.lexists(path)

    def same(self, left: str, right: str) -> bool:
        """See :meth:`FileView.same`."""
        try:
            there = os.stat(right)
        except (OSError, ValueError):
            return not os.path.lexists(left)
        try:
            return os.path.samestat(os.stat(left), there)
        except (OSError, ValueError):
            return False

    def git_settings(self, repository: str) -> bytes | None:
        """See :meth:`FileView.git_settings`."""
        directory = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with ExitStack() as opened:
            outer = os.open(repository, directory)
            opened.callback(os.close, outer)
            try:
                inner = os.open(".git", directory, dir_fd=outer)
            except FileNotFoundError:
                return None
            opened.callback(os.close, inner)
            config = os.open("config", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=inner)
            file = opened.enter_context(open(config, "rb"))
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > SETTINGS_LIMIT:
                raise ValueError("not a regular file, or too large")
            return file.read(SETTINGS_LIMIT)


HOST_FILES = HostFiles()
"""The view of every engine that judges real calls."""


@dataclass(frozen=True)
class AssumedFiles:
    """
    Files that exist only in a description.

    :param files: content by absolute path. The directories above exist, too.
    :param links: target by absolute path of each symbolic link.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _directories(self) -> frozenset[str]:
        return frozenset(
            path[:end] for path in (*self.files, *self.links) for end, each in enumerate(path) if each == "/" and end
        )

    def link(self, path: str) -> str | None:
        """See :meth:`FileView.link`."""
        return self.links.get(path, "" if self.exists(path) else None)

    def exists(self, path: str) -> bool:
        """See :meth:`FileView.exists`."""
        return path in self.files or path in self.links or path in self._directories

    def same(self, left: str, right: str) -> bool:
        """See :meth:`FileView.same`."""
        return not (self.exists(left) or self.exists(right))

    def git_settings(self, repository: str) -> bytes | None:
        """See :meth:`FileView.git_settings`."""
        settings = self.files.get(f"{repository}/.git/config")
        return None if settings is None else settings.encode()
