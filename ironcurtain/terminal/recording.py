"""Record what a terminal shows, as asciicast v2 (docs.asciinema.org), without what must not be kept."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec

from ironcurtain.terminal.typed import Kind, Piece

RECORDING_LIMIT = 64 * 1024 * 1024
"""Most bytes of one recording; the rest of the session is left out, and a marker says so."""

GATHER_SECONDS = 0.01
"""Output that comes within so long is one event (nobody sees the difference when it is played)."""

GATHER_SIZE = 64 * 1024
"""How many bytes are gathered before they are written."""

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
    The events of one recording. They are gathered for a while, so that nobody who types waits for them: call
    :meth:`flush` soon where :attr:`waits` says so.

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
        self._sink, self._start, self.echoes = sink, start, echoes
        self._shown = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = True
        self._output: list[bytes] = []
        self._output_time, self._gathered = start, 0
        self._events: list[tuple[float, str, str | bytes]] = []
        head = {"version": 2, "width": columns, "height": rows, "timestamp": int(timestamp), "title": title}
        line = msgspec.json.encode(head) + b"\n"
        self._left = limit - len(line)
        sink.write(line)

    @property
    def waits(self) -> bool:
        """Whether something is not written yet."""
        return bool(self._output or self._events)

    def flush(self) -> None:
        """Write all that was gathered."""
        self._close_output()
        events, self._events, self._gathered = self._events, [], 0
        if not (events and self._open):
            return
        try:
            self._sink.write(b"".join(self._lines(events)))
        finally:
            if self._left < 0:
                self._close()

    def output(self, now: float, data: bytes) -> None:
        """What the program wrote; a character may be cut in two."""
        if not self._open:
            return
        if self._output and now - self._output_time > GATHER_SECONDS:
            self._close_output()
        if not self._output:
            self._output_time = now
        self._output.append(data)
        self._gathered += len(data)
        if self._gathered >= GATHER_SIZE:
            self.flush()

    def typed(self, now: float, pieces: list[Piece], echoed: bool) -> None:
        """
        What a person typed; what the terminal sends by itself is left out.

        :param echoed: what :attr:`echoes` said before the program had it.
        """
        data = b"".join(piece.data for piece in pieces if piece.kind in (Kind.TYPED, Kind.PASTED))
        if data:
            self._event(now, "i", data.decode("utf-8", "replace") if echoed else MASK)

    def resized(self, now: float, columns: int, rows: int) -> None:
        """The terminal has another size."""
        self._event(now, "r", f"{columns}x{rows}")

    def marker(self, now: float, label: str) -> None:
        """Something happened that is worth finding again."""
        self._event(now, "m", label)
        self.flush()

    def end(self) -> None:
        """The program ended. Harmless the second time."""
        try:
            self.flush()
        finally:
            self._close()

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._sink.close()

    def _close_output(self) -> None:
        if self._output:
            self._events.append((self._output_time, "o", b"".join(self._output)))
            self._output = []

    def _event(self, now: float, kind: str, data: str) -> None:
        if self._open:
            self._close_output()
            self._events.append((now, kind, data))

    def _lines(self, events: list[tuple[float, str, str | bytes]]) -> Iterator[bytes]:
        for now, kind, data in events:
            text = self._shown.decode(data) if isinstance(data, bytes) else data
            line = self._line(now, kind, text) if text else b""
            self._left -= len(line)
            if self._left < 0:
                yield self._line(now, "m", "the recording ends here: it is long enough")
                return
            yield line

    def _line(self, now: float, kind: str, text: str) -> bytes:
        return msgspec.json.encode((round(max(0.0, now - self._start), 6), kind, text)) + b"\n"
