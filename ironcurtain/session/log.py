"""``session.log``: what happened in a session, in lines for people."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from twisted.logger import Logger

from ironcurtain.audit.chain import timestamp
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.text.display import one_line

TEXT_LIMIT = 2000
"""Most characters of one line's text."""


class SessionLog:
    """
    Writes lines as they come. A line that cannot be written is dropped, and the first such is told to our own log.

    :param now: seconds since the epoch.
    :param redactor: every line goes through it.
    """

    log = Logger()

    def __init__(self, path: Path, now: Callable[[], float], redactor: Redactor) -> None:
        self._path, self._now, self._redactor = path, now, redactor
        self._fd = -1
        self._failed = False

    def open(self) -> None:
        """Make the file, or go on with the one that is there."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, 0o600)

    def close(self) -> None:
        """Write no more; later lines are dropped."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def write(self, source: str, text: str) -> None:
        """
        :param source: what speaks, in a word.
        :param text: anything; it becomes one line that is safe to show.
        """
        if self._fd < 0:
            return
        clean = one_line(self._redactor.value(text, TEXT_LIMIT), TEXT_LIMIT)
        try:
            os.write(self._fd, f"{timestamp(self._now())} {source}: {clean}\n".encode())
        except OSError as e:
            if not self._failed:
                self.log.error("{path} cannot be written: {error}", path=self._path, error=e)
            self._failed = True
