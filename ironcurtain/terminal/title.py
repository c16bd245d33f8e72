"""The title of a terminal's window."""

from __future__ import annotations

from collections.abc import Callable

NO_TITLE = ("linux", "eterm-color")
"""Terminals that display a title sequence as text."""


class Title:
    """
    The title of a viewer's terminal, if it can show one.

    :param term: the terminal's name.
    :param write: writes to it.
    """

    def __init__(self, term: str, write: Callable[[str], object]) -> None:
        self._write = write if term not in NO_TITLE else lambda sequence: None
        self._words: str | None = None

    def begin(self) -> None:
        """Save the one that the terminal has."""
        self._write("\x1b[22;0t")

    def show(self, words: str = "") -> None:
        """:param words: stand behind the name of the program; they need no escaping."""
        if words != self._words:
            self._words = words
            self._write(f"\x1b]2;ironcurtain{words}\a")

    def end(self) -> None:
        """Give back the one that was saved."""
        self._write("\x1b[23;0t")
