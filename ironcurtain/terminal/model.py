"""What the parts of a terminal session are to each other, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

USUAL_COLUMNS, USUAL_ROWS = 80, 24
"""The size of a terminal that says nothing about its size."""

MOST_COLUMNS, MOST_ROWS = 1000, 500
"""The largest size that is believed (four times a large screen; a model of it takes some 10 MB)."""


class Mode(StrEnum):
    """What a viewer may do."""

    DRIVE = "drive"
    """Its keys reach the program, and its size is the program's while it is the last one in use."""

    OBSERVE = "observe"
    """It only sees."""


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """
    How a program ended.

    :param status: as a shell says it, 128 and the number for a signal; ``None``: not known.
    :param reason: for people; empty if there is nothing to say.
    """

    status: int | None
    reason: str = ""


class ProgramStream(Protocol):
    """The program's end: a PTY of this machine, or the Engine's connection to a container's."""

    def write(self, data: bytes) -> None:
        """What is typed."""

    def pause(self) -> None:
        """Give no more output for now."""

    def resume(self) -> None:
        """Give output again."""

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now. Comes at most every 50 ms, with the last one in the end."""

    def close(self) -> None:
        """Nobody reads it any more."""


class Viewer(Protocol):
    """A person's end, as the hub sees it."""

    def draw(self, data: bytes) -> bool:
        """
        Show more. Must not call the attachment's ``drained`` before it returns.

        :param data: taken in any case.
        :returns: whether more can be taken now; if not, ``drained`` says when.
        """

    def hold(self, full: bool) -> None:
        """:param full: whether to take no more from the keyboard for now, since the program does not read."""

    def ended(self, reason: str, status: int | None) -> None:
        """The program ended, and all of its output has been drawn."""


class TerminalChannel(Protocol):
    """A terminal that somebody sits at, over whatever connection."""

    @property
    def blocked(self) -> bool:
        """Whether what was written waits, so that nothing more should be written."""

    def write(self, data: bytes) -> None:
        """Show bytes; harmless once it is closed."""

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows, as the terminal says."""

    def hold(self, full: bool) -> None:
        """:param full: whether to read no more keys for now."""

    def close(self, status: int | None) -> None:
        """:param status: what the command that the person gave ends with."""


class ScreenModel(Protocol):
    """
    Knows what a terminal that was there all the time would show.

    Answers come at once or later, each exactly once; they tell of all that was fed before the question, and of nothing
    after it.
    """

    @property
    def between(self) -> bool:
        """Whether the output is between two sequences, so that bytes of ours may be put in."""

    def feed(self, data: bytes) -> None:
        """Take output, cut anywhere."""

    def resize(self, columns: int, rows: int) -> None:
        """Have another size."""

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        """
        Find what brings any terminal to what it should show. The program's further output may follow at once.

        :param columns: of that terminal, as are ``rows``.
        :param history: with lines that have scrolled off, where the size is the same.
        :param draw: gets it.
        """

    def text(self, found: Callable[[str], None]) -> None:
        """:param found: gets all that is known as plain text: lines that scrolled off, then the screen."""

    def close(self) -> None:
        """No more output comes. It may be asked all the same, but then knows less."""


def sane_size(columns: int, rows: int) -> tuple[int, int]:
    """A size that a terminal can have: what is zero or negative becomes the usual, what is huge the largest."""
    return (
        min(columns, MOST_COLUMNS) if columns > 0 else USUAL_COLUMNS,
        min(rows, MOST_ROWS) if rows > 0 else USUAL_ROWS,
    )
