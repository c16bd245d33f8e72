"""
Recordings of terminals: written as asciicast v2 (docs.asciinema.org), without secrets; read as v2 or v3.

A recording can end in the middle of a line, after a crash or while it is being written. The complete lines count.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Protocol

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.terminal.keys import InputKind, InputPiece
from ironcurtain.terminal.model import sane_size

RECORDING_LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes of one recording; the rest of the session is left out, and a marker says so."""

GATHER_SECONDS = 0.01
"""Output within so many seconds becomes one event (the difference is invisible when played)."""

GATHER_SIZE = 64 * 1024
"""Number of bytes collected before a write."""

MASK = "*"
"""Stands for one read of input that the terminal does not echo, whatever its length."""


class Sink(Protocol):
    """Stores a recording."""

    def write(self, data: bytes) -> None:
        """
        Store complete lines.

        :raises OSError: they cannot be stored.
        """

    def close(self) -> None:
        """The recording ended."""


def _never() -> bool:
    return False


class Recording:
    """
    Writes the events of one recording. They are buffered, so that nobody who types waits for the disk: call
    :meth:`flush` soon if :attr:`waits` is true.

    :param sink: stores them; its exceptions pass through every method.
    :param start: start of the recording, in seconds of the clock of all other times.
    :param columns: initial size of the terminal, with ``rows``.
    :param timestamp: the same moment in seconds since the epoch.
    :param echoes: returns whether the terminal echoes input now. Input without echo, such as a password, is masked; if
        unknown, all is.
    :param limit: maximum size in bytes.
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
        """Whether data is buffered."""
        return bool(self._output or self._events)

    def flush(self) -> None:
        """Write buffered data."""
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
        """Record output; a character may be split."""
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

    def typed(self, now: float, pieces: list[InputPiece], echoed: bool) -> None:
        """
        Record what a person typed; the terminal's own reports are left out.

        :param echoed: the value of :attr:`echoes` before the program got the input.
        """
        data = b"".join(piece.data for piece in pieces if piece.kind in (InputKind.TYPED, InputKind.PASTED))
        if data:
            self._event(now, "i", data.decode("utf-8", "replace") if echoed else MASK)

    def resized(self, now: float, columns: int, rows: int) -> None:
        """Record a new size of the terminal."""
        self._event(now, "r", f"{columns}x{rows}")

    def marker(self, now: float, label: str) -> None:
        """Record a marker."""
        self._event(now, "m", label)
        self.flush()

    def end(self) -> None:
        """The program ended. Can be called twice."""
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
                yield self._line(now, "m", "the recording ends here: it has its maximum size")
                return
            yield line

    def _line(self, now: float, kind: str, text: str) -> bytes:
        return msgspec.json.encode((round(max(0.0, now - self._start), 6), kind, text)) + b"\n"


LONGEST_SECONDS = 10 * 365 * 86400.0
"""Times in seconds beyond this count as damage (ten years)."""

_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")

Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_SECONDS)]


class NoRecording(UsageError):
    """A file is not a recording of a terminal."""


class CastEvent(msgspec.Struct, frozen=True):
    """
    An event in a recording.

    :param time: in seconds from the start.
    :param output: the program's output; empty for other events.
    :param marker: the label of a marker.
    :param size: columns and rows of the terminal from now on.
    """

    time: float
    output: str = ""
    marker: str = ""
    size: tuple[int, int] | None = None


class Cast(msgspec.Struct, frozen=True):
    """
    A recording.

    :param size: initial columns and rows.
    :param idle_limit: maximum length of a pause in seconds, as the recording asks; ``None``: no limit.
    :param events: by time; input is not included.
    :param torn: whether the last line is incomplete.
    :param damaged: number of other invalid lines.
    """

    size: tuple[int, int]
    title: str
    idle_limit: float | None
    events: tuple[CastEvent, ...]
    torn: bool
    damaged: int

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return self.events[-1].time if self.events else 0.0

    @property
    def markers(self) -> tuple[CastEvent, ...]:
        """Its markers."""
        return tuple(event for event in self.events if event.marker)


class _Term(msgspec.Struct):
    cols: int
    rows: int


class _Head(msgspec.Struct):
    version: int
    width: int = 0
    height: int = 0
    term: _Term | None = None
    title: str = ""
    idle_time_limit: Seconds | None = None


_Line = msgspec.json.Decoder(tuple[Seconds, str, Any])


def read_cast(data: bytes) -> Cast:
    """
    :param data: the complete file.
    :raises NoRecording: it is not a recording, or has an unknown version.
    """
    first, _, rest = data.partition(b"\n")
    head = _head(first)
    columns, rows = (head.term.cols, head.term.rows) if head.term is not None else (head.width, head.height)
    lines = rest.split(b"\n")
    torn, events, damaged = False, list[CastEvent](), 0
    now = 0.0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(b"#"):  # comments, in version 3
            continue
        try:
            seconds, kind, content = _Line.decode(line)
            now = now + seconds if head.version == 3 else max(now, seconds)
            events += _shown(now, kind, content)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
            torn = torn or number == len(lines)
            damaged += number != len(lines)
    return Cast(sane_size(columns, rows), head.title, head.idle_time_limit, tuple(events), torn, damaged)


def _head(line: bytes) -> _Head:
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoRecording("is not a recording of a terminal (asciicast v2 or v3)") from None
    if head.version not in (2, 3):
        raise NoRecording(f"is asciicast v{head.version}: only v2 and v3 can be played")
    return head


def _shown(now: float, kind: str, content: Any) -> Iterator[CastEvent]:
    """:raises ValueError: the content does not match the kind."""
    if kind not in ("o", "m", "r"):
        return
    if not isinstance(content, str):
        raise ValueError(kind)
    if kind == "o" and content:
        yield CastEvent(now, output=content)
    elif kind == "m":
        yield CastEvent(now, marker=content or "marker")
    elif kind == "r":
        if (size := _SIZE.fullmatch(content)) is None:
            raise ValueError(content)
        yield CastEvent(now, size=sane_size(int(size[1]), int(size[2])))
