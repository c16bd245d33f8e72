"""Publish a session's pending escalations in a directory, and read the responses that other programs write there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError, NotFound, StaleDecision, UsageError
from ironcurtain.escalation import files
from ironcurtain.escalation.model import ApprovalAdded, Change, Closed, Escalation, Outcome, Raised
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.files.atomic import publish_once, write_atomically
from ironcurtain.home.registry import read_small_file

TRANSIENT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Errors of this process rather than of a response file, which is read again later."""

PATIENCE = 2.0
"""Seconds after which an invalid response file is a denial. Until then its writer may not have finished."""


class Rendezvous:
    """
    The files of one session's escalations.

    :param directory: an existing directory that no other session uses.
    :param now: returns seconds since the epoch.
    """

    log = Logger()

    def __init__(
        self, directory: Path, queue: EscalationQueue, watcher: DirectoryWatcher, now: Callable[[], float]
    ) -> None:
        self._directory, self._queue, self._watcher, self._now = directory, queue, watcher, now
        self._unsubscribe: Callable[[], None] = lambda: None
        self._shown: dict[str, int] = {}
        """The number of equal calls in each published file, by escalation id."""

    def start(self) -> None:
        """Remove the files of an earlier process, and start to publish and watch."""
        for pattern in ("request-*.json", "response-*.json", ".request-*"):
            for path in self._directory.glob(pattern):
                path.unlink(missing_ok=True)
        self._unsubscribe = self._queue.subscribe(self._changed)
        self._queue.before_expiry = self._check_response
        self._watcher.add(self._directory, self.scan)

    def stop(self) -> None:
        """Stop watching. Withdrawing the escalations first removes their files."""
        self._watcher.remove(self._directory)
        self._unsubscribe()

    def scan(self) -> None:
        """Apply every response in the directory, and remove those that are too late."""
        try:
            names = {name for name in os.listdir(self._directory) if files.response_id(name)}
        except FileNotFoundError:  # the directory was removed; other front ends still work
            return
        if not names:
            return
        pending = {files.response_name(escalation.id): escalation for escalation in self._queue.pending()}
        for name in names:
            if name in pending:
                self._apply(pending[name], self._now() - PATIENCE)
            else:
                self._remove(name)

    def _check_response(self, escalation: Escalation) -> None:
        if (self._directory / files.response_name(escalation.id)).exists():
            self._apply(escalation, self._now())

    def _apply(self, escalation: Escalation, complete_before: float) -> None:
        path = self._directory / files.response_name(escalation.id)
        written = 0.0
        try:
            written = path.lstat().st_mtime
            response = files.read_response(path.name, read_small_file(path, files.RESPONSE_LIMIT))
        except FileNotFoundError:
            return
        except (ConfigurationError, OSError) as e:
            if e.errno in TRANSIENT if isinstance(e, OSError) else written > complete_before:
                return
            self.log.warn("invalid response file, the escalation is denied: {error}", error=e)
            response = files.FileResponse(Outcome.DENIED, None, "unreadable answer file")
        self._decide(escalation, response)

    def _decide(self, escalation: Escalation, response: files.FileResponse) -> None:
        by = f"file:{response.by}" if response.by else "file"
        try:
            calls = self._shown.get(escalation.id)
            decided = self._queue.decide(escalation.number, response.outcome, by, response.digest, calls=calls)
            if decided.outcome is None:  # so that another program can answer, too
                self._remove(files.response_name(escalation.id))
        except (StaleDecision, UsageError) as e:  # a form cannot be approved: its answer has values
            self.log.warn("ignored a response file: {error}", error=e)
            self._remove(files.response_name(escalation.id))
        except NotFound:
            pass

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # already removed, or a directory with this name
            (self._directory / name).unlink()

    def _changed(self, change: Change) -> None:
        if isinstance(change, Closed):
            escalation = change.escalation
            self._shown.pop(escalation.id, None)
            for name in (files.request_name(escalation.id), files.response_name(escalation.id)):
                (self._directory / name).unlink(missing_ok=True)
        elif isinstance(change, ApprovalAdded):
            escalation = change.escalation
            self._shown[escalation.id] = escalation.calls
            path = self._directory / files.request_name(escalation.id)
            write_atomically(path, files.request_file(escalation), durable=False)
        elif isinstance(change, Raised):
            escalation = change.escalation
            self._shown[escalation.id] = escalation.calls
            # The escalation itself does not survive a crash of the machine, so its file need not either.
            path = self._directory / files.request_name(escalation.id)
            publish_once(path, files.request_file(escalation), durable=False)
