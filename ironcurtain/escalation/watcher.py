"""
Watch directories for new files: one inotify instance per process, and periodic scans.

The scans replace inotify where it is not available. They also cover an overflow of the kernel's event queue, which
Twisted does not report.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.internet.main import CONNECTION_DONE
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.filepath import FilePath

try:
    from twisted.internet import inotify
except ImportError:  # another system than Linux
    inotify = None  # type: ignore[assignment]

SCAN_SECONDS = 5.0
"""Interval in seconds between scans of watched directories."""

SCAN_SECONDS_UNWATCHED = 0.5
"""Interval in seconds between scans of directories that cannot be watched."""

MOVED_ITSELF = 0x800
"""IN_MOVE_SELF (inotify(7)): the directory has another path now."""

EVENTS = 0x100 | 0x80 | 0x40 | 0x200 | 0x8 | MOVED_ITSELF
"""IN_CREATE, IN_MOVED_TO, IN_MOVED_FROM, IN_DELETE, IN_CLOSE_WRITE, and that."""


class DirectoryWatcher:
    """
    Calls back when a file appears in, or disappears from, a watched directory.

    :param reactor: provides time, and reads the file descriptor of inotify.
    :param seconds: interval between scans of watched directories, :data:`SCAN_SECONDS` unless given.
    :param unwatched_seconds: the same if one cannot be watched, :data:`SCAN_SECONDS_UNWATCHED` unless given.
    """

    log = Logger()

    def __init__(self, reactor: Any, seconds: float | None = None, unwatched_seconds: float | None = None) -> None:
        self._callbacks: dict[Path, Callable[[], None]] = {}
        self._unwatched: set[Path] = set()
        self._seconds = SCAN_SECONDS if seconds is None else seconds
        self._unwatched_seconds = SCAN_SECONDS_UNWATCHED if unwatched_seconds is None else unwatched_seconds
        self._reactor = reactor
        self._notify = _start_notify(reactor, self._restart)
        self._scan = LoopingCall(self._scan_all)
        self._scan.clock = IReactorTime(reactor)

    def add(self, directory: Path, callback: Callable[[], None]) -> bool:
        """
        Watch a directory.

        :param callback: called soon after each change, and at every scan. It examines the directory itself.
        :returns: whether the kernel reports its changes; if not, it is only scanned.
        """
        self._callbacks[directory] = callback
        self._watch(directory)
        self._set_interval()
        return directory not in self._unwatched

    def remove(self, directory: Path) -> None:
        """Stop watching a directory. It has no effect if the directory is not watched."""
        if self._callbacks.pop(directory, None) is None:
            return
        self._unwatched.discard(directory)
        self._set_interval()
        if self._notify is not None:
            with suppress(
                Exception
            ):  # it could not be watched, or was removed, of which the kernel has a nameless error
                self._notify.ignore(FilePath(str(directory)))

    def stop(self) -> None:
        """Stop watching all directories, and close the file descriptor."""
        for directory in list(self._callbacks):
            self.remove(directory)
        notify, self._notify = self._notify, None
        if notify is not None:
            notify.stopReading()
            notify.connectionLost(Failure(CONNECTION_DONE))

    def _watch(self, directory: Path) -> None:
        self._unwatched.add(directory)
        if self._notify is None:
            return
        try:
            self._notify.watch(FilePath(str(directory)), mask=EVENTS, callbacks=[self._changed])
        except Exception as e:  # Twisted raises an exception without a public name
            if directory.is_dir():
                self.log.warn("cannot watch {directory}, so it is scanned: {error}", directory=directory, error=e)
        else:
            self._unwatched.discard(directory)

    def _set_interval(self) -> None:
        seconds = self._unwatched_seconds if self._unwatched else self._seconds
        if self._scan.running and (seconds != self._scan.interval or not self._callbacks):
            self._scan.stop()
        if self._callbacks and not self._scan.running:
            self._scan.start(seconds, now=False)

    def _restart(self) -> None:
        if self._notify is not None:
            self._notify = _start_notify(self._reactor, self._restart)
            for directory in self._callbacks:
                self._watch(directory)
            self._set_interval()
            self._scan_all()

    def _changed(self, _watch: object, path: FilePath[bytes], mask: int) -> None:
        place = Path(os.fsdecode(path.path))
        self._call(place if mask & MOVED_ITSELF else place.parent)

    def _scan_all(self) -> None:
        for directory in list(self._callbacks):
            self._call(directory)

    def _call(self, directory: Path) -> None:
        if (callback := self._callbacks.get(directory)) is None:
            return
        try:
            callback()
        except Exception:
            self.log.failure("the callback for {directory} failed", directory=directory)


def _start_notify(reactor: Any, lost: Callable[[], None]) -> Any:
    if inotify is None:
        return None

    class Notify(inotify.INotify):
        """Reports the loss of the whole instance: Twisted closes it when one watched directory is removed."""

        is_lost = False

        def connectionLost(self, reason: Failure) -> None:
            if not self.is_lost:  # a second call would close a descriptor that may have been reused
                self.is_lost = True
                super().connectionLost(reason)
                lost()

    try:
        notify = Notify(reactor)
        notify.startReading()
    except Exception:  # what Twisted raises here has no public name
        return None
    return notify
