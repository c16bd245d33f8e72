"""The audit log's way to the disk: records are synced in groups, in a thread, and whoever needs one there waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from ironcurtain.audit.file import LogChanged, LogFile
from ironcurtain.errors import AuditUnavailable
from ironcurtain.platform.files import sync_data

SYNC_SECONDS = 1.0
"""Maximum delay in seconds before a record is synced. A crash of this process loses nothing that it has written."""

InThread = Callable[[Callable[[], None]], Deferred[None]]


class Syncing:
    """
    :param in_thread: runs a blocking function in a thread (``deferToThread``).
    :param failed: called with the reason when the file cannot be synced, or was changed meanwhile; it has to call
        :meth:`stop`.
    """

    def __init__(self, file: LogFile, clock: IReactorTime, in_thread: InThread, failed: Callable[[str], None]) -> None:
        self._file, self._clock, self._in_thread, self._failed = file, clock, in_thread, failed
        self._written, self._synced = 0, 0
        self._running: Deferred[None] | None = None
        self._waiting: list[tuple[int, Deferred[None]]] = []
        self._later: Any = None
        self._error: AuditUnavailable | None = None

    def written(self, sequence: int) -> None:
        """Sync the records up to this number soon."""
        self._written = sequence
        if self._later is None:
            self._later = self._clock.callLater(SYNC_SECONDS, self._due)

    def durable(self, sequence: int) -> Deferred[None]:
        """
        :param sequence: a record's number.
        :returns: fires when the record is on disk; fails with :class:`AuditUnavailable` if it cannot be synced.
        """
        if sequence <= self._synced:
            return succeed(None)
        done: Deferred[None] = Deferred()
        if self._error is not None:
            done.errback(Failure(self._error))
            return done
        self._waiting.append((sequence, done))
        self._sync()
        return done

    def stop(self, error: AuditUnavailable) -> None:
        """Sync nothing more: who waits, or comes later, gets this error. Only the first one counts."""
        if self._error is None:
            self._error = error
            waiting, self._waiting = self._waiting, []
            for _, done in waiting:
                done.errback(Failure(error))

    def cancel(self) -> None:
        """Stop the timer, before the file is closed."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _due(self) -> None:
        self._later = None
        self._sync()

    def _sync(self) -> None:
        if self._running is None and self._error is None and self._synced < self._written:
            covered, fd = self._written, self._file.fd
            self._running = self._in_thread(lambda: sync_data(fd))
            self._running.addCallbacks(lambda _: self._done(covered), self._not_done)

    def _done(self, sequence: int) -> None:
        self._running = None
        try:
            self._file.check()
        except LogChanged as e:
            self._failed(str(e))
            return
        self._synced = sequence
        ready = [done for needed, done in self._waiting if needed <= sequence]
        self._waiting = [(needed, done) for needed, done in self._waiting if needed > sequence]
        if self._waiting:
            self._sync()
        for done in ready:
            done.callback(None)

    def _not_done(self, failure: Failure) -> None:
        self._running = None
        self._failed(f"it cannot be written: {failure.getErrorMessage()}")
