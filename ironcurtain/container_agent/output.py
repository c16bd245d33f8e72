"""A program's output, bounded: its end, and its lines as they come."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.jsonrpc.framing import Framer, TooLong
from ironcurtain.text.display import one_line

TAIL_SHOWN = 600
"""Maximum length in characters of a failed program's last output in the error."""

ANSWER_LIMIT = 4 * 1024 * 1024
"""Maximum number of bytes kept of a program's output, the last ones (an answer with all its events)."""

ERRORS_LIMIT = 64 * 1024
"""Maximum number of bytes kept of its standard error, the last ones."""

LINE_LIMIT = 2000
"""Maximum length in characters of a reported line of standard error."""

LINES_A_SECOND = 50
"""Number of lines of standard error reported per second; further lines are counted."""


def tail(output: bytes) -> str:
    """:returns: the end of a program's output as one line, for an error."""
    text = output[-4 * TAIL_SHOWN :].decode("utf-8", "replace").strip()
    return one_line(text[-TAIL_SHOWN:])


class Tail:
    """
    Keeps the end of a stream.

    :param limit: in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._data = limit, bytearray()
        self.size = 0
        """Number of bytes in total."""

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self.size += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit:  # rarely, so that not every piece causes a copy
            del self._data[: -self._limit]

    def clear(self) -> None:
        """Forget what is kept."""
        self._data.clear()

    @property
    def kept(self) -> bytes:
        """The last bytes."""
        return bytes(self._data[-self._limit :])


class Lines:
    """
    Splits standard error into lines, bounded in length and rate.

    :param tell: called with each line.
    :param seconds: a monotonic clock.
    """

    def __init__(self, tell: Callable[[str], None], seconds: Callable[[], float]) -> None:
        self._tell, self._seconds = tell, seconds
        self._framer = Framer(4 * LINE_LIMIT)
        self._second, self._count = 0, 0

    def feed(self, data: bytes) -> None:
        """Process bytes as they arrive."""
        for line in self._framer.feed(data):
            self._line("(a line that is too long)" if isinstance(line, TooLong) else line.decode("utf-8", "replace"))

    def end(self) -> None:
        """The stream ended; the last line may lack a line end."""
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
