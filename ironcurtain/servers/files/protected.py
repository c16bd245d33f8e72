"""Recognise protected files and directories by what they are, whatever name they are reached by."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from ironcurtain.platform.files import LINK_ITSELF, PATH_ONLY
from ironcurtain.servers.files.failures import FileError, shown

HELD_LIMIT = 500
"""Maximum number of earlier files at protected names that are remembered, with a descriptor each."""

FileId = tuple[int, int]
"""Device and inode."""


def file_id(found: os.stat_result) -> FileId:
    """:returns: what identifies a file as long as it exists."""
    return found.st_dev, found.st_ino


class ProtectedFiles:
    """
    What is, or was, at protected names.

    A file that was renamed, replaced, or has another hard link stays protected as long as it exists: a descriptor,
    through which nothing can be read, keeps its inode from being used for another file.

    :param names: absolute paths without symbolic links, which need not exist.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names: dict[str, list[str]] = {}
        """By directory: most names do not exist, and often not even their directory, which is found out fast."""
        for name in names:
            self._names.setdefault(os.path.dirname(name), []).append(name)
        self._held: dict[FileId, int] = {}
        self.look()

    def look(self) -> None:
        """Take note of what is there now."""
        for directory, names in self._names.items():
            for name in names if os.access(directory, os.F_OK) else ():
                if os.access(name, os.F_OK):
                    with suppress(OSError):
                        self._hold(name)
        if len(self._held) > HELD_LIMIT:
            self._forget()

    def check(self, found: os.stat_result, path: str) -> None:
        """
        :param found: the status of a file that was opened, or is about to be used.
        :param path: its path, for the message.
        :raises FileError: it is protected.
        """
        if self.has(found):
            raise FileError(f"{shown(path)} is protected")

    def has(self, found: os.stat_result) -> bool:
        """:returns: whether a file is protected."""
        return file_id(found) in self._held

    def close(self) -> None:
        """Close all descriptors."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _hold(self, name: str) -> None:
        if file_id(os.lstat(name)) in self._held:
            return
        descriptor = os.open(name, PATH_ONLY | LINK_ITSELF | os.O_CLOEXEC)
        if self._held.setdefault(file_id(os.fstat(descriptor)), descriptor) != descriptor:
            os.close(descriptor)

    def _forget(self) -> None:
        """Forget files that are deleted, and of the others the oldest ones."""
        for found, descriptor in list(self._held.items()):
            if os.fstat(descriptor).st_nlink == 0 or len(self._held) > HELD_LIMIT:
                os.close(self._held.pop(found))
