"""Keep a session's pending escalations in a directory, and take the answers that other programs put there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError, NotFound, StaleDecision
from ironcurtain.escalation import files
from ironcurtain.escalation.model import Change, Closed, Escalation, Outcome, Raised
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.files.atomic import publish_once
from ironcurtain.home.registry import read_small_file

PASSING = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Errors that say nothing about an answer file: it is looked at again later."""

PATIENCE = 2.0
"""Seconds that an unreadable answer may take to become readable, for writers that do not rename into place."""


class Rendezvous:
    """
    The files of one session's escalations.

    :param directory: exists, and is ours alone.
    :param now: seconds since the epoch.
    """

    log = Logger()

    def __init__(
        self, directory: Path, queue: EscalationQueue, watcher: DirectoryWatcher, now: Callable[[], float]
    ) -> None:
        self._directory, self._queue, self._watcher, self._now = directory, queue, watcher, now
        self._unsubscribe: Callable[[], None] = lambda: None
        self._shown: dict[str, int] = {}
        """How many equal calls each file shows that is there."""

    def start(self) -> None:
        """Clear what an earlier owner left, and begin to publish and to watch."""
        for pattern in ("request-*.json", "response-*.json", ".request-*"):
            for path in self._directory.glob(pattern):
                path.unlink(missing_ok=True)
        self._unsubscribe = self._queue.subscribe(self._changed)
        self._queue.last_look = self._look_once_more
        self._watcher.add(self._directory, self.scan)

    def stop(self) -> None:
        """Stop watching. Files of escalations that were withdrawn are gone by then."""
        self._watcher.remove(self._directory)
        self._unsubscribe()

    def scan(self) -> None:
        """Take every answer that lies in the directory, and remove those that came too late."""
        try:
            names = {name for name in os.listdir(self._directory) if files.response_id(name)}
        except FileNotFoundError:  # somebody removed the directory: people can still answer elsewhere
            return
        if not names:
            return
        asked = {files.response_name(escalation.id): escalation for escalation in self._queue.pending()}
        for name in names:
            if name in asked:
                self._take(asked[name], self._now() - PATIENCE)
            else:
                self._remove(name)

    def _look_once_more(self, escalation: Escalation) -> None:
        if (self._directory / files.response_name(escalation.id)).exists():
            self._take(escalation, self._now())

    def _take(self, escalation: Escalation, patient_until: float) -> None:
        path = self._directory / files.response_name(escalation.id)
        written = 0.0
        try:
            written = path.lstat().st_mtime
            response = files.read_response(path.name, read_small_file(path, files.RESPONSE_LIMIT))
        except FileNotFoundError:
            return
        except (ConfigurationError, OSError) as e:
            if e.errno in PASSING if isinstance(e, OSError) else written > patient_until:
                return
            self.log.warn("refused an answer file: {error}", error=e)
            response = files.Response(Outcome.DENIED, None, "unreadable answer file")
        self._decide(escalation, response)

    def _decide(self, escalation: Escalation, response: files.Response) -> None:
        by = f"file:{response.by}" if response.by else "file"
        try:
            calls = self._shown.get(escalation.id)
            self._queue.decide(escalation.number, response.outcome, by, response.digest, calls=calls)
        except StaleDecision as e:
            self.log.warn("ignored an answer file: {error}", error=e)
            self._remove(files.response_name(escalation.id))
        except NotFound:
            pass

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # it is gone, or somebody made a directory of this name
            (self._directory / name).unlink()

    def _changed(self, change: Change) -> None:
        if isinstance(change, Closed):
            escalation = change.escalation
            self._shown.pop(escalation.id, None)
            for name in (files.request_name(escalation.id), files.response_name(escalation.id)):
                (self._directory / name).unlink(missing_ok=True)
        elif isinstance(change, Raised):
            escalation = change.escalation
            self._shown[escalation.id] = escalation.calls
            # No crash of the machine is survived by the question itself, so its file need not survive one either.
            path = self._directory / files.request_name(escalation.id)
            publish_once(path, files.request_file(escalation), durable=False)
