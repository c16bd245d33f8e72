"""Lines of a stream that match a pattern. Who writes the stream is not trusted: everything has a limit."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ironcurtain.text.display import one_line
from ironcurtain.watchers.matching import part_matcher
from ironcurtain.watchers.model import Event

LINE_LIMIT = 8192
"""Maximum length in bytes of a line; the rest of a longer one is skipped."""

SHOWN_LIMIT = 2000
"""Maximum number of characters of a line in an event."""


class MatchingLines(msgspec.Struct):
    """
    :param pattern: as for :func:`~ironcurtain.watchers.matching.part_matcher`; empty: every line with text.
    """

    pattern: str
    _buffer: bytearray = msgspec.field(default_factory=bytearray)
    _skipping: bool = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """
        Take bytes as they come, in any slicing.

        :returns: an event for each line that matches.
        """
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            line, skipped = bytes(self._buffer[:end]), self._skipping
            del self._buffer[: end + 1]
            self._skipping = False
            if not skipped:
                yield from self._event(line)
        if len(self._buffer) > LINE_LIMIT:
            line, skipped = bytes(self._buffer[:LINE_LIMIT]), self._skipping
            self._buffer.clear()
            self._skipping = True
            if not skipped:
                yield from self._event(line)

    def end(self) -> Iterator[Event]:
        """:returns: an event if the last line, which has no end, matches."""
        line, skipped = bytes(self._buffer), self._skipping
        self._buffer.clear()
        if not skipped:
            yield from self._event(line)

    def _event(self, line: bytes) -> Iterator[Event]:
        text = line[:LINE_LIMIT].decode(errors="backslashreplace").removesuffix("\r")
        if text.strip() and part_matcher(self.pattern)(text):
            yield Event({"line": one_line(text, SHOWN_LIMIT)})
