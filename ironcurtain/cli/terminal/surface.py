"""What shows a session and reads lines: a terminal, or plain streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ironcurtain.text.columns import Line
from ironcurtain.view.look import Signs
from ironcurtain.view.narration import Live


class Listener(Protocol):
    """Receives the person's input."""

    def typed(self, line: str, began: float, own: str = "") -> None:
        """
        The person entered a line.

        :param began: when its first character was typed, in seconds of the reactor's clock; minus infinity if a part of
            it was pasted, infinity if a program wrote it.
        :param own: what of it was typed, and neither pasted nor piped in.
        """

    def interrupt(self) -> None:
        """Ctrl-C was pressed on an empty input line."""

    def input_ended(self) -> None:
        """Ctrl-D was pressed on an empty line, or the input stream ended."""

    def lost(self, why: str) -> None:
        """The surface can no longer show or read anything."""


class Surface(Protocol):
    """
    Where a front end writes and reads.

    :cvar live: whether it redraws and accepts input at any time. Otherwise it only prints, and lines wait until they
        are read.
    """

    live: bool = False
    signs: Signs

    def width(self) -> int:
        """:returns: columns."""

    def open(self, listener: Listener, reads: bool) -> None:
        """
        Begin.

        :param reads: whether to read lines even if the input is not a terminal.
        """

    def print(self, lines: Sequence[Line], answer: bool = False) -> None:
        """
        Print lines that stay.

        :param answer: whether they are a complete answer.
        :raises OSError: the output was closed.
        """

    def bell(self, text: str) -> None:
        """Alert the person; ``text`` says why, and needs no escaping."""

    async def close(self) -> None:
        """Stop drawing, and restore the terminal."""

    def show(self, live: Live) -> None:
        """Redraw the changing part, on a surface that is :attr:`live`."""
        return

    def calm(self) -> None:
        """End the alert, if anything shows it."""
        return

    def put_back(self, text: str) -> None:
        """Insert text of the last entered line at the beginning of the input line, if there is one."""
        return
