"""
The user's own words, recorded on the host before they reach the agent, in files that no agent can access.

They are what the user sent or typed. Output, files, results and the agent's text never become part of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec
from twisted.logger import Logger

from ironcurtain.audit.chain import timestamp
from ironcurtain.files.atomic import write_atomically

LIMIT = 32 * 1024
"""Maximum size in bytes of all words of a session that are kept. The oldest are dropped."""

RECENT = 8 * 1024
"""Maximum size in bytes of the words that count as recent: a long message, or the last dozens of short ones."""


class InputSource(StrEnum):
    """Where words came from. The values are stable: they appear in files."""

    MESSAGE = "message"
    TASK = "task"
    TERMINAL = "terminal"


class Words(msgspec.Struct, frozen=True):
    """One message or line of the user, without secrets."""

    timestamp: str
    source: InputSource
    text: str

    @property
    def size(self) -> int:
        """Bytes in UTF-8."""
        return len(self.text.encode())


class UserContext(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``user-context.json``. The time and source are those of the newest words."""

    user_message: str
    timestamp: str
    source: InputSource


class TrustedInput:
    """
    The words of one session.

    :param path: the file that has all of them.
    :param context: ``user-context.json``.
    :param clean: removes secrets.
    :param now: returns seconds since the epoch.
    """

    log = Logger()

    def __init__(self, path: Path, context: Path, clean: Callable[[str], str], now: Callable[[], float]) -> None:
        self._path, self._context, self._clean, self._now = path, context, clean, now
        self._words: deque[Words] = deque()
        self._size = 0

    def add(self, text: str, source: InputSource) -> None:
        """Record words, at most :data:`LIMIT` bytes of them. Words that cannot be recorded do not count."""
        kept = self._clean(text).encode("utf-8", "replace")[:LIMIT].decode("utf-8", "ignore")
        if not kept.strip():
            return
        words = Words(timestamp(self._now()), source, kept)
        self._words.append(words)
        self._size += words.size
        while self._size > LIMIT:
            self._size -= self._words.popleft().size
        encoded = b"".join(msgspec.json.encode(each) + b"\n" for each in self._words)
        try:
            write_atomically(self._path, encoded, durable=False)
        except OSError as e:
            self.log.error("what the user typed cannot be recorded: {error}", error=e)
            self._size -= self._words.pop().size

    def recent(self) -> list[str]:
        """:returns: the newest words, oldest first, within :data:`RECENT`; none if the newest alone are longer."""
        found: list[str] = []
        room = RECENT
        for words in reversed(self._words):
            room -= words.size
            if room < 0:
                break
            found.insert(0, words.text)
        return found

    def publish(self) -> list[str]:
        """
        Write ``user-context.json``, for an escalation that needs it.

        :returns: the recent words; empty if there are none, and no file is written.
        :raises OSError: it cannot be written.
        """
        if words := self.recent():
            newest = self._words[-1]
            context = UserContext("\n".join(words), newest.timestamp, newest.source)
            write_atomically(self._context, msgspec.json.encode(context) + b"\n")
        return words
