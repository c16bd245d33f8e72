"""Directories whose changes the kernel reports, as long as it has watches for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ironcurtain.escalation.watcher import DirectoryWatcher

POLL_SECONDS = 5.0
"""Seconds between looks where the kernel reports nothing."""

SCAN_SECONDS = 60.0
"""Seconds between looks where the kernel reports changes: it loses some when there are very many."""


class FollowedDirectories:
    """
    :param name: of the tree, for people.
    :param reactor: provides time, and reads the file descriptor of inotify.
    :param changed: called soon after each change, and from time to time.
    :param warn: called with a sentence for people when the kernel has no more watches.
    """

    def __init__(self, name: str, reactor: Any, changed: Callable[[], None], warn: Callable[[str], None]) -> None:
        self._name, self._reactor, self._changed, self._warn = name, reactor, changed, warn
        self._watcher: DirectoryWatcher | None = None
        self._watched: set[tuple[str, tuple[int, int]]] = set()
        self._polled = False

    def start(self) -> None:
        """Begin."""
        self._watcher = DirectoryWatcher(self._reactor, SCAN_SECONDS, POLL_SECONDS)

    def stop(self) -> None:
        """Follow nothing any more."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    def follow(self, directories: Mapping[str, tuple[int, int]]) -> bool:
        """
        Follow these directories, and no others.

        :param directories: device and inode of each by its path: one that was replaced is followed afresh.
        :returns: whether the kernel reports changes of some only from now on.
        """
        if self._watcher is None or self._polled:
            return False
        wanted = set(directories.items())
        for gone, _ in self._watched - wanted:
            self._watcher.remove(Path(gone))
        new, self._watched = wanted - self._watched, wanted
        for directory, _ in sorted(new):
            if not self._watcher.add(Path(directory), self._changed) and os.path.isdir(directory):
                self._poll(directory)
                return False
        return bool(new)

    def _poll(self, directory: str) -> None:
        self._warn(
            f"the kernel has no more watches for {self._name}, which is looked at every {POLL_SECONDS:g} s instead: "
            "raise fs.inotify.max_user_watches with sysctl(8), or watch a smaller directory"
        )
        self._polled = True
        self.stop()
        self._watcher = DirectoryWatcher(self._reactor, POLL_SECONDS, POLL_SECONDS)
        self._watcher.add(Path(directory), self._changed)
