"""Where a session is shown and lines are typed: a terminal, or plain streams."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from ironcurtain.cli.terminal.glyphs import Glyphs
from ironcurtain.cli.terminal.view import Live
from ironcurtain.text.columns import Line


class Listener(Protocol):
    """Who hears what the person does."""

    def typed(self, line: str, began: float) -> None:
        """
        A line was entered.

        :param began: when its first character was typed, in seconds since the epoch.
        """

    def interrupt(self) -> None:
        """Ctrl-C, with nothing in the input line."""

    def input_ended(self) -> None:
        """Ctrl-D on an empty line, or the end of the stream."""

    def lost(self, why: str) -> None:
        """Nothing more can be shown or read."""


class Surface(Protocol):
    """What a front end draws on and hears from."""

    live: bool
    """Whether it redraws and its input line stays free; otherwise it only prints, and lines wait for their turn."""

    glyphs: Glyphs

    def width(self) -> int:
        """:returns: columns."""

    def open(self, listener: Listener, reads: bool) -> None:
        """
        Begin.

        :param reads: whether lines are wanted even if they do not come from a person at a terminal.
        """

    def print(self, lines: Sequence[Line], answer: bool = False) -> None:
        """
        Print lines that stay.

        :param answer: they are an answer in whole.
        :raises OSError: nobody reads the output any more.
        """

    def show(self, live: Live) -> None:
        """Draw what changes; only a surface that is :attr:`live` does."""

    def bell(self, text: str) -> None:
        """Call the person; ``text`` says what for, and is ours."""

    def calm(self) -> None:
        """Nothing waits for the person any more."""

    def put_back(self, text: str) -> None:
        """Put text into the input line, before what is there."""

    def close(self) -> Awaitable[None]:
        """Draw nothing more, and leave the terminal as it was."""
