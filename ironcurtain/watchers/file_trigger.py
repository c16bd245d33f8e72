"""Changes of files: the kernel says where to look, and contents say what has changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.errors import UsageError
from ironcurtain.servers.files.globs import matcher
from ironcurtain.text.display import one_line, readable_path
from ironcurtain.watchers.followed import SCAN_SECONDS, FollowedDirectories
from ironcurtain.watchers.model import Event, Watcher
from ironcurtain.watchers.tree import Change, Look, Tree, changes, digest_of

GATHER_SECONDS = 0.2
"""Seconds for which changes are collected before a look."""

REST = 4.0
"""A look that took a while is followed by a rest of so many times as long, but of :data:`SCAN_SECONDS` at most."""

NAMES_SHOWN = 20
"""Maximum number of paths in one event."""

PATH_LIMIT = 300
"""Maximum number of characters of a path in an event."""

InThread = Callable[[Callable[[], Look]], Deferred[Look]]
"""Runs a blocking function in a thread."""


def unwatchable(path: Path, hidden: Collection[str]) -> str:
    """
    :param hidden: real paths of directories that are not watched.
    :returns: why a path cannot be watched; empty if it can.
    """
    root = os.path.realpath(path)
    if any(Path(root).is_relative_to(place) for place in hidden):
        return f"{path} is in IronCurtain's home, which is not watched: change path"
    return "" if os.path.lexists(root) else f"there is no {path}: make it, or change path in watchers.toml"


class FileTrigger:
    """
    A :class:`~ironcurtain.watchers.trigger.Trigger` for the files below a path.

    :param watcher: with a ``path``.
    :param reactor: provides time, and reads the file descriptor of inotify.
    :param hidden: real paths of directories that are not watched, such as the home.
    :param warn: called with a sentence for people: what is not watched, or only polled.
    """

    log = Logger()

    def __init__(
        self,
        watcher: Watcher,
        reactor: Any,
        in_thread: InThread,
        hidden: Collection[str],
        warn: Callable[[str], None],
    ) -> None:
        assert watcher.path is not None
        self._path, self._reactor, self._in_thread, self._warn = watcher.path, reactor, in_thread, warn
        root = os.path.realpath(watcher.path)
        self._tree = Tree(root, matcher(watcher.pattern) if watcher.pattern else lambda names: True, hidden)
        self._before, self._lock = Look(), DeferredLock()
        self._fire: Callable[[Event], None] = lambda event: None
        self._followed = FollowedDirectories(str(watcher.path), reactor, self._changed, warn)
        self._timer: IDelayedCall | None = None
        self._stopped, self._rest = False, GATHER_SECONDS

    def start(self, fire: Callable[[Event], None]) -> None:
        """
        Begin to watch; the first look, in a thread, shows what is known.

        :raises UsageError: there is nothing at the path, or it is in a hidden directory.
        """
        if problem := unwatchable(self._path, self._tree.hidden):
            raise UsageError(problem)
        self._fire = fire
        self._followed.start()
        self._begin_look(report=False)

    def settle(self) -> Deferred[None]:
        """:returns: fires when what is there now is known."""
        return self._begin_look(report=False)

    def stop(self) -> None:
        """Watch nothing any more."""
        self._stopped = True
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._followed.stop()

    def _changed(self) -> None:
        if not self._stopped and (self._timer is None or not self._timer.active()):
            self._timer = self._reactor.callLater(self._rest, self._begin_look)

    def _begin_look(self, report: bool = True) -> Deferred[None]:
        return Deferred.fromCoroutine(self._look(report)).addErrback(
            lambda failure: self.log.failure("looking at {path} failed", failure, path=str(self._path))
        )

    async def _look(self, report: bool) -> None:
        """:param report: whether what has changed is an event."""
        await self._lock.acquire()
        try:
            if self._stopped:
                return
            begun = self._reactor.seconds()
            now = await self._in_thread(lambda: self._tree.look(self._before, lambda: self._stopped))
            if self._stopped:
                return
            if now.over and not self._before.over:
                self._warn(f"{self._path} {now.over}: changes of the others are not noticed; watch a smaller directory")
            found, self._before = changes(self._before, now), now
            self._rest = min(max(GATHER_SECONDS, REST * (self._reactor.seconds() - begun)), SCAN_SECONDS)
            if self._followed.follow(now.directories or {os.path.dirname(self._tree.root): (0, 0)}):
                self._changed()  # files can have appeared before the kernel began to report them
        finally:
            self._lock.release()
        if report and found:
            self._fire(self._event(found))

    def _event(self, found: list[Change]) -> Event:
        data = {"path": _shown(str(self._path))}
        for kind in ("changed", "new", "gone"):
            if names := [change.path for change in found if change.kind == kind]:
                more = f" (+{len(names) - NAMES_SHOWN} more)" if len(names) > NAMES_SHOWN else ""
                data[kind] = ", ".join(map(_shown, names[:NAMES_SHOWN])) + more
        return Event(data, digest_of(found))


def _shown(path: str) -> str:
    return one_line(readable_path(path), PATH_LIMIT)
