"""
Tell when files appear in directories: one inotify instance a process, and a scan for where it is missing or overflows.

Twisted reports no overflow of the kernel's queue, so every directory is scanned now and then as well.
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
"""How often directories are scanned although they are watched."""

SCAN_SECONDS_UNWATCHED = 0.5
"""How often they are scanned where the system cannot watch them."""

EVENTS = 0x100 | 0x80 | 0x200 | 0x8
"""IN_CREATE, IN_MOVED_TO, IN_DELETE and IN_CLOSE_WRITE (inotify(7))."""


class DirectoryWatcher:
    """
    Calls back when something appeared in, or vanished from, a watched directory.

    :param reactor: for the file descriptor of inotify and for time.
    """

    log = Logger()

    def __init__(self, reactor: Any) -> None:
        self._callbacks: dict[Path, Callable[[], None]] = {}
        self._reactor = reactor
        self._notify = _start_notify(reactor, self._restart)
        self._scan = LoopingCall(self._scan_all)
        self._scan.clock = IReactorTime(reactor)

    def add(self, directory: Path, callback: Callable[[], None]) -> None:
        """
        Watch a directory.

        :param callback: is called soon after each change, and at every scan; it looks for itself what there is.
        """
        self._callbacks[directory] = callback
        self._watch(directory)

    def remove(self, directory: Path) -> None:
        """Stop watching; harmless if the directory is not watched."""
        if self._callbacks.pop(directory, None) is None:
            return
        if not self._callbacks:
            self._scan.stop()
        if self._notify is not None:
            with suppress(KeyError):  # it could not be watched, or has vanished
                self._notify.ignore(FilePath(str(directory)))

    def stop(self) -> None:
        """Watch nothing any more, and give the descriptor back."""
        for directory in list(self._callbacks):
            self.remove(directory)
        notify, self._notify = self._notify, None
        if notify is not None:
            notify.stopReading()
            notify.connectionLost(Failure(CONNECTION_DONE))

    def _watch(self, directory: Path) -> None:
        try:
            if self._notify is None:
                seconds = SCAN_SECONDS_UNWATCHED
            else:
                self._notify.watch(FilePath(str(directory)), mask=EVENTS, callbacks=[self._changed])
                seconds = SCAN_SECONDS
        except Exception as e:  # what Twisted raises here has no public name
            self.log.warn("{directory} is scanned, for it cannot be watched: {error}", directory=directory, error=e)
            seconds = SCAN_SECONDS_UNWATCHED
        if self._scan.running and seconds < (self._scan.interval or 0):
            self._scan.stop()
        if not self._scan.running:
            self._scan.start(seconds, now=False)

    def _restart(self) -> None:
        if self._notify is not None:
            self._notify = _start_notify(self._reactor, self._restart)
            for directory in self._callbacks:
                self._watch(directory)
            self._scan_all()

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


def _start_notify(reactor: Any, lost: Callable[[], None]) -> Any:
    if inotify is None:
        return None

    class Notify(inotify.INotify):
        """Twisted gives the whole instance up when one watched directory vanishes: say so, for the others' sake."""

        is_lost = False

        def connectionLost(self, reason: Failure) -> None:
            if not self.is_lost:  # it can come twice, and the number may be another file's by then
                self.is_lost = True
                super().connectionLost(reason)
                lost()

    try:
        notify = Notify(reactor)
        notify.startReading()
    except Exception:  # what Twisted raises here has no public name
        return None
    return notify
