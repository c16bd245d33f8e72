"""
The user's own words, recorded on the host before they reach the agent, in files that no agent can access.

They are what the user typed. Output, files, results and the agent's text never become part of them, and what the user
pasted or piped in is kept apart.
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


class Words(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    One message or line of the user, without secrets.

    :param text: what the user typed; may be empty.
    :param sent: all that was sent, also what was pasted or piped in; empty if it is the same.
    """

    timestamp: str
    source: InputSource
    text: str
    sent: str = ""

    @property
    def size(self) -> int:
        """Bytes in UTF-8."""
        return len(self.text.encode()) + len(self.sent.encode())


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

    def add(self, text: str, source: InputSource, sent: str = "") -> None:
        """
        Record words, at most :data:`LIMIT` bytes of them. Words that cannot be recorded do not count.

        :param text: what the user typed.
        :param sent: all that was sent, if more than that.
        """
        kept = self._cut(text, LIMIT)
        more = self._cut(sent, LIMIT - len(kept.encode())) if sent != text else ""
        if not kept.strip() and not more.strip():
            return
        words = Words(timestamp(self._now()), source, kept, more)
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

    def _cut(self, text: str, limit: int) -> str:
        return self._clean(text).encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")

    def recent(self) -> list[str]:
        """:returns: the newest typed words, oldest first, within :data:`RECENT`; none if the newest are longer."""
        found: list[str] = []
        room = RECENT
        for words in reversed(self._words):
            room -= len(words.text.encode())
            if room < 0:
                break
            if words.text.strip():
                found.insert(0, words.text)
        return found

    def others(self) -> list[str]:
        """:returns: what was sent besides the typed words, oldest first: it asks for nothing, and can reject."""
        return [words.sent for words in self._words if words.sent]

    def publish(self) -> list[str]:
        """
        Write ``user-context.json``, for an escalation that needs it.

        :returns: the recent words; empty if there are none, and no file is written.
        :raises OSError: it cannot be written.
        """
        if words := self.recent():
            newest = next(each for each in reversed(self._words) if each.text.strip())
            context = UserContext("\n".join(words), newest.timestamp, newest.source)
            write_atomically(self._context, msgspec.json.encode(context) + b"\n")
        return words
