"""The interfaces between the parts of a terminal session, and the values that they exchange."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec

USUAL_COLUMNS, USUAL_ROWS = 80, 24
"""The default size of a terminal of unknown size."""

MOST_COLUMNS, MOST_ROWS = 1000, 500
"""The maximum size (four times a large screen; a model of it takes some 10 MB)."""


class Mode(StrEnum):
    """A viewer's rights."""

    DRIVE = "drive"
    """Its input reaches the program, and the program's terminal has its size while it is the last one in use."""

    OBSERVE = "observe"
    """It only sees output."""


class ProgramExit(msgspec.Struct, frozen=True):
    """
    How a program ended.

    :param status: as in a shell, 128 plus the number for a signal; ``None``: unknown.
    :param reason: for people; empty if there is nothing to say.
    """

    status: int | None
    reason: str = ""


class ProgramStream(Protocol):
    """The program's end: a pseudo-terminal of this machine, or the Engine's connection to a container's terminal."""

    def write(self, data: bytes) -> None:
        """Send input."""

    def pause(self) -> None:
        """Pause output."""

    def resume(self) -> None:
        """Resume output."""

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size. Called at most every 50 ms, finally with the last size."""

    def close(self) -> None:
        """Discard further output."""


class Viewer(Protocol):
    """A viewer, as the hub uses it."""

    def draw(self, data: bytes) -> bool:
        """
        Show output. Must not call the attachment's ``drained`` before it returns.

        :param data: always taken.
        :returns: whether more can be taken now; if not, ``drained`` is called later.
        """

    def hold(self, full: bool) -> None:
        """:param full: whether to pause reading keys, since the program does not read."""

    def ended(self, reason: str, status: int | None) -> None:
        """The program ended, and all of its output has been drawn."""


class TerminalChannel(Protocol):
    """A person's terminal, over any connection."""

    @property
    def blocked(self) -> bool:
        """Whether output is queued, so that nothing more should be written."""

    def write(self, data: bytes) -> None:
        """Show bytes; ignored once it is closed."""

    def size(self) -> tuple[int, int]:
        """:returns: columns and rows of the terminal."""

    def hold(self, full: bool) -> None:
        """:param full: whether to pause reading keys."""

    def close(self, status: int | None) -> None:
        """:param status: exit status of the person's command."""


class ScreenModel(Protocol):
    """
    Knows what a terminal shows that has received all output.

    Answers are given at once or later, each exactly once. They reflect exactly the output that was fed before the
    request.
    """

    @property
    def between(self) -> bool:
        """Whether the output does not end in an incomplete sequence, so that other bytes may be inserted."""

    def feed(self, data: bytes) -> None:
        """Process output, split anywhere."""

    def resize(self, columns: int, rows: int) -> None:
        """Set the size."""

    def redraw(self, columns: int, rows: int, history: bool, draw: Callable[[bytes], None]) -> None:
        """
        Generate a redraw for any terminal. The program's further output may follow at once.

        :param columns: size of that terminal, with ``rows``.
        :param history: whether to include scrollback, if the size is the same.
        :param draw: called with the redraw.
        """

    def text(self, found: Callable[[str], None]) -> None:
        """:param found: called with scrollback and screen as plain text."""

    def close(self) -> None:
        """No more output follows. Later requests are answered less exactly."""


def sane_size(columns: int, rows: int) -> tuple[int, int]:
    """A size that a terminal can have: what is zero or negative becomes the usual, what is huge the largest."""
    return (
        min(columns, MOST_COLUMNS) if columns > 0 else USUAL_COLUMNS,
        min(rows, MOST_ROWS) if rows > 0 else USUAL_ROWS,
    )
