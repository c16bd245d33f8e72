"""
Give the account that restores a workspace access to directories that an agent closed to it, for the time it takes.

Permissions are changed through descriptors, without following links, and only of directories that our account owns.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from ironcurtain.platform.files import change_mode
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import OpenRoot, Place, parent

LIST = stat.S_IRUSR | stat.S_IXUSR
"""The permissions of its owner that listing a directory takes."""

CHANGE = stat.S_IRWXU
"""Those that adding and removing what is in it takes."""

Parts = tuple[str, ...]
"""A path within a workspace; empty: the workspace."""


class Access:
    """
    :ivar former: the permissions that directories had before they were changed here.
    """

    def __init__(self, root: OpenRoot) -> None:
        self._root = root
        self.former: dict[Parts, int] = {}
        self._given: dict[Parts, int] = {}

    def give(self, path: Parts, needed: int) -> None:
        """
        Make a directory accessible, and all above it enterable. What is missing, or of another account, stays as it is.

        :param needed: :data:`LIST` or :data:`CHANGE`.
        """
        if self._given.get(path, 0) & needed == needed:
            return
        for depth in range(len(path) + 1):
            above, rights = path[:depth], needed if depth == len(path) else LIST
            if self._given.get(above, 0) & rights != rights:
                with suppress(FileError, OSError):
                    self._give(above, rights)

    def take_back(self, recorded: Mapping[Parts, int]) -> Iterator[tuple[Parts, str]]:
        """
        Set the permissions of directories, the deepest first: those of a snapshot, and else the former ones.

        :param recorded: those of a snapshot.
        :returns: the paths of these that could not be set, with the reason.
        """
        for path in recorded:
            self.give(path[:-1], LIST)
        modes = {**self.former, **recorded}
        for path in sorted(modes, key=len, reverse=True):
            try:
                self._change(path, partial(_given, modes[path]))
            except (FileError, OSError) as e:
                if path in recorded:
                    yield path, (e.strerror if isinstance(e, OSError) else "") or str(e)
        self.former.clear()
        self._given.clear()

    def close(self) -> None:
        """Set the former permissions, if :meth:`take_back` did not do so already."""
        for _ in self.take_back({}):
            pass

    def _give(self, path: Parts, needed: int) -> None:
        def mode(found: os.stat_result) -> int:
            now = stat.S_IMODE(found.st_mode)
            return now if now & needed == needed or found.st_uid != os.geteuid() else now | CHANGE

        former, new = self._change(path, mode)
        if new != former:
            self.former[path] = former
        self._given[path] = new

    def _change(self, path: Parts, mode: Callable[[os.stat_result], int]) -> tuple[int, int]:
        """:returns: the former permissions, and the new ones."""
        if path:
            with parent(Place(self._root, path)) as (directory, name):
                return change_mode(directory, name, mode)
        found = os.fstat(self._root.descriptor)
        former, new = stat.S_IMODE(found.st_mode), mode(found)
        if new != former:
            os.fchmod(self._root.descriptor, new)
        return former, new


def _given(mode: int, _: os.stat_result) -> int:
    return mode
