"""Record what a terminal shows, as asciicast v2 (docs.asciinema.org), without what must not be kept. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Protocol

import msgspec

from ironcurtain.terminal.typed import Kind, Piece

RECORDING_LIMIT = 64 * 1024 * 1024
"""Most bytes of one recording (our choice); the rest of the session is left out, and a marker says so."""

GATHER_SECONDS = 0.01
"""Output that comes within so long is one event (our choice: nobody sees the difference when it is played)."""

GATHER_SIZE = 64 * 1024
"""How many bytes are gathered before they are written (our choice)."""

MASK = "*"
"""Stands for one read of keys that the terminal does not show, whatever their number."""


class Sink(Protocol):
    """Where a recording goes."""

    def write(self, data: bytes) -> None:
        """
        Keep whole lines.

        :raises OSError: it cannot be kept.
        """

    def close(self) -> None:
        """No more will come."""


def _never() -> bool:
    return False


class Recording:
    """
    Lines of one recording. They are gathered for a while: call :meth:`flush` soon where :attr:`waits` says so.

    :param sink: gets them; what it raises passes through every method.
    :param start: when the recording begins, in seconds of the clock that gives all other times.
    :param columns: of the terminal at that time, as are ``rows``.
    :param timestamp: the same moment in seconds since 1970.
    :param echoes: whether the terminal shows now what is typed. What it does not show, such as a password, is masked;
        where nobody can tell, so is all.
    :param limit: most bytes.
    """

    def __init__(
        self,
        sink: Sink,
        start: float,
        columns: int,
        rows: int,
        *,
        timestamp: float,
        title: str = "",
        echoes: Callable[[], bool] = _never,
        limit: int = RECORDING_LIMIT,
    ) -> None:
        self._sink, self._start, self._echoes = sink, start, echoes
        self._left = limit
        self._shown = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = True
        self._output: list[bytes] = []
        self._output_size, self._output_time = 0, start
        self._lines: list[bytes] = []
        head = {"version": 2, "width": columns, "height": rows, "timestamp": int(timestamp), "title": title}
        self._put(msgspec.json.encode(head), start)
        self.flush()

    @property
    def waits(self) -> bool:
        """Whether something is not written yet."""
        return bool(self._output or self._lines)

    def flush(self) -> None:
        """Write all that was gathered."""
        self._close_output()
        lines, self._lines = self._lines, []
        if lines:
            self._sink.write(b"".join(lines))

    def output(self, now: float, data: bytes) -> None:
        """What the program wrote; a character may be cut in two."""
        if not self._open:
            return
        if self._output and now - self._output_time > GATHER_SECONDS:
            self._close_output()
        if not self._output:
            self._output_time = now
        self._output.append(data)
        self._output_size += len(data)
        if self._output_size >= GATHER_SIZE:
            self.flush()

    def typed(self, now: float, pieces: list[Piece]) -> None:
        """What a person typed; what the terminal sends by itself is left out."""
        data = b"".join(piece.data for piece in pieces if piece.kind in (Kind.TYPED, Kind.PASTED))
        if data:
            self._event(now, "i", data.decode("utf-8", "replace") if self._echoes() else MASK)

    def resized(self, now: float, columns: int, rows: int) -> None:
        """The terminal has another size."""
        self._event(now, "r", f"{columns}x{rows}")

    def marker(self, now: float, label: str) -> None:
        """Something happened that is worth finding again."""
        self._event(now, "m", label)
        self.flush()

    def end(self, now: float) -> None:
        """The program ended. Harmless the second time."""
        if self._open:
            try:
                self.flush()
            finally:
                self._open = False
                self._sink.close()

    def _close_output(self) -> None:
        pieces, self._output, self._output_size = self._output, [], 0
        if pieces and (text := self._shown.decode(b"".join(pieces))):
            self._line(self._output_time, "o", text)

    def _event(self, now: float, kind: str, data: str) -> None:
        self._close_output()
        self._line(now, kind, data)

    def _line(self, now: float, kind: str, data: str) -> None:
        if self._open:
            self._put(msgspec.json.encode((self._seconds(now), kind, data)), now)

    def _put(self, line: bytes, now: float) -> None:
        self._left -= len(line) + 1
        if self._left < 0:
            line = msgspec.json.encode((self._seconds(now), "m", "the recording ends here: it is long enough"))
        self._lines.append(line + b"\n")
        if self._left < 0:
            self.end(now)

    def _seconds(self, now: float) -> float:
        return round(max(0.0, now - self._start), 6)
