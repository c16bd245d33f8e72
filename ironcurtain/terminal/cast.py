"""
Read recordings of terminals: asciicast v2, which we write, and v3 (docs.asciinema.org).

A recording may end in the middle of a line, after a crash or while it is still written. What stands before that counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.terminal.model import sane_size

LONGEST_SECONDS = 10 * 365 * 86400.0
"""A time beyond this counts as damage (ten years)."""

_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})")

Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_SECONDS)]


class NoRecording(UsageError):
    """A file is no recording of a terminal."""


@dataclass(frozen=True, slots=True)
class Shown:
    """
    Something that happened.

    :param time: in seconds from the start.
    :param output: what the program wrote; empty if it is something else.
    :param marker: the label of a marker.
    :param size: columns and rows that the terminal has from now on.
    """

    time: float
    output: str = ""
    marker: str = ""
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """
    A recording.

    :param size: columns and rows at the start.
    :param idle_limit: most seconds of a pause that whoever made it wants to be kept; ``None``: all.
    :param events: by time; what was typed is not among them.
    :param torn: whether the last line has no end.
    :param damaged: how many other lines make no sense.
    """

    size: tuple[int, int]
    title: str
    idle_limit: float | None
    events: tuple[Shown, ...]
    torn: bool
    damaged: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.events[-1].time if self.events else 0.0

    @property
    def markers(self) -> tuple[Shown, ...]:
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
    :param data: a whole file.
    :raises NoRecording: it is none, or of a version that we do not know.
    """
    first, _, rest = data.partition(b"\n")
    head = _head(first)
    columns, rows = (head.term.cols, head.term.rows) if head.term is not None else (head.width, head.height)
    lines = rest.split(b"\n")
    torn, events, damaged = False, list[Shown](), 0
    now = 0.0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(b"#"):  # comments, in version 3
            continue
        try:
            seconds, kind, content = _Line.decode(line)
            now = now + seconds if head.version == 3 else max(now, seconds)
            events += _shown(now, kind, content)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            torn = torn or number == len(lines)
            damaged += number != len(lines)
    return Cast(sane_size(columns, rows), head.title, head.idle_time_limit, tuple(events), torn, damaged)


def _head(line: bytes) -> _Head:
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoRecording("is no recording of a terminal (asciicast v2 or v3)") from None
    if head.version not in (2, 3):
        raise NoRecording(f"is asciicast v{head.version}: only v2 and v3 can be played")
    return head


def _shown(now: float, kind: str, content: Any) -> Iterator[Shown]:
    """:raises ValueError: the content is not that of this kind."""
    if kind not in ("o", "m", "r"):
        return
    if not isinstance(content, str):
        raise ValueError(kind)
    if kind == "o" and content:
        yield Shown(now, output=content)
    elif kind == "m":
        yield Shown(now, marker=content or "marker")
    elif kind == "r":
        if (size := _SIZE.fullmatch(content)) is None:
            raise ValueError(content)
        yield Shown(now, size=sane_size(int(size[1]), int(size[2])))
