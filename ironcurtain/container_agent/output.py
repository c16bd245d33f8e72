"""What an agent's program prints: the end of it is kept, and its error output told line by line."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.jsonrpc.framing import Framer, TooLong

ANSWER_LIMIT = 4 * 1024 * 1024
"""Most bytes of a program's output that are kept, the last ones (an answer with all its events)."""

ERRORS_LIMIT = 64 * 1024
"""Most bytes of its error output that are kept, the last ones."""

LINE_LIMIT = 2000
"""Most characters of a line of error output that are told."""

LINES_A_SECOND = 50
"""How many lines of error output are told each second; the rest is counted."""


class Tail:
    """
    The end of what is fed.

    :param limit: in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._data = limit, bytearray()
        self.size = 0
        """How many bytes there were in all."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self.size += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit:  # seldom, so that not each piece moves all of them
            del self._data[: -self._limit]

    @property
    def kept(self) -> bytes:
        """The last bytes."""
        return bytes(self._data[-self._limit :])


class Lines:
    """
    Error output, cut into lines, bounded in length and number.

    :param tell: hears each line.
    :param seconds: a clock that never goes back.
    """

    def __init__(self, tell: Callable[[str], None], seconds: Callable[[], float]) -> None:
        self._tell, self._seconds = tell, seconds
        self._framer = Framer(4 * LINE_LIMIT)
        self._second, self._count = 0, 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        for line in self._framer.feed(data):
            self._line("(a line that is too long)" if isinstance(line, TooLong) else line.decode("utf-8", "replace"))

    def end(self) -> None:
        """There will be no more: the last line may have no end."""
        self.feed(b"\n")
        self._left_out()

    def _line(self, line: str) -> None:
        if not line.strip():
            return
        if (second := int(self._seconds())) != self._second:
            self._left_out()
            self._second, self._count = second, 0
        self._count += 1
        if self._count <= LINES_A_SECOND:
            self._tell(line.rstrip()[:LINE_LIMIT])

    def _left_out(self) -> None:
        if self._count > LINES_A_SECOND:
            self._tell(f"({self._count - LINES_A_SECOND} more lines were left out)")
        self._count = 0
