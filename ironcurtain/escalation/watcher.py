"""
Tell when files appear in directories: one inotify instance a process, and a scan for where it is missing or overflows.

Twisted reports no overflow of the kernel's queue, so every directory is scanned now and then as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet import inotify
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python import _inotify as inotify_binding
from twisted.python.filepath import FilePath

SCAN_SECONDS = 5.0
"""How often directories are scanned although they are watched."""

SCAN_SECONDS_UNWATCHED = 0.5
"""How often they are scanned where the system cannot watch them."""

EVENTS = inotify.IN_CREATE | inotify.IN_MOVED_TO | inotify.IN_DELETE | inotify.IN_CLOSE_WRITE


class DirectoryWatcher:
    """
    Calls back when something appeared in, or vanished from, a watched directory.

    :param reactor: for the file descriptor of inotify and for time.
    """

    log = Logger()

    def __init__(self, reactor: Any) -> None:
        self._callbacks: dict[Path, Callable[[], None]] = {}
        self._notify = _start_notify(reactor)
        self._scan = LoopingCall(self._scan_all)
        self._scan.clock = IReactorTime(reactor)

    def add(self, directory: Path, callback: Callable[[], None]) -> None:
        """
        Watch a directory.

        :param callback: is called soon after each change, and at every scan; it looks for itself what there is.
        """
        self._callbacks[directory] = callback
        if self._notify is not None:
            self._notify.watch(FilePath(str(directory)), mask=EVENTS, callbacks=[self._changed])
        if not self._scan.running:
            self._scan.start(SCAN_SECONDS_UNWATCHED if self._notify is None else SCAN_SECONDS, now=False)

    def remove(self, directory: Path) -> None:
        """Stop watching; harmless if the directory is not watched."""
        if self._callbacks.pop(directory, None) is None:
            return
        if self._notify is not None:
            self._notify.ignore(FilePath(str(directory)))
        if not self._callbacks:
            self._scan.stop()

    def stop(self) -> None:
        """Watch nothing any more, and give the descriptor back."""
        for directory in list(self._callbacks):
            self.remove(directory)
        if self._notify is not None:
            self._notify.stopReading()
            self._notify.loseConnection()
            self._notify = None

    def _changed(self, _watch: object, path: FilePath[bytes], _mask: int) -> None:
        self._call(Path(os.fsdecode(path.path)).parent)

    def _scan_all(self) -> None:
        for directory in list(self._callbacks):
            self._call(directory)

    def _call(self, directory: Path) -> None:
        if (callback := self._callbacks.get(directory)) is None:
            return
        try:
            callback()
        except Exception:
            self.log.failure("looking at {directory} failed", directory=directory)


def _start_notify(reactor: Any) -> inotify.INotify | None:
    try:
        notify = inotify.INotify(reactor)
        notify.startReading()
    except (OSError, inotify_binding.INotifyError):
        return None
    return notify
