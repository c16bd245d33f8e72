"""The terminal of a loop: one for all iterations, whichever program has it just then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ironcurtain.terminal.model import Stream


class Source(Protocol):
    """What gives output."""

    def pause(self) -> None:
        """Give no more for now."""

    def resume(self) -> None:
        """Give it again."""


class LoopStream:
    """
    Passes on to the program that runs now, if one runs, what its viewers do.

    :param typed: hears what is typed to the program.
    :param resized: hears of sizes.
    :ivar program: the one that runs, if it has a terminal.
    :ivar listens: whether it gets what is typed.
    """

    def __init__(self, typed: Callable[[bytes], None], resized: Callable[[int, int], None]) -> None:
        self._typed, self._resized = typed, resized
        self._source: Source | None = None
        self._full = self._behind = False
        self.program: Stream | None = None
        self.listens = True

    @property
    def paused(self) -> bool:
        """Whether no more output is to come for now."""
        return self._full or self._behind

    def begin(self, source: Source, program: Stream | None = None) -> None:
        """One runs."""
        self._source, self.program = source, program
        if self.paused:
            source.pause()

    def over(self) -> None:
        """It has ended."""
        self._source = self.program = None

    def write(self, data: bytes) -> None:
        """What is typed."""
        if self.program is not None and self.listens:
            self.program.write(data)  # first: a person waits for it
            self._typed(data)

    def pause(self) -> None:
        """Its viewers take no more for now."""
        self._hold(True, self._behind)

    def resume(self) -> None:
        """They take more."""
        self._hold(False, self._behind)

    def hold_back(self, behind: bool) -> None:
        """:param behind: whether what reads the output does not keep up."""
        self._hold(self._full, behind)

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        if self.program is not None:
            self.program.resize(columns, rows)
        self._resized(columns, rows)

    def close(self) -> None:
        """Nobody reads it any more."""
        if self.program is not None:
            self.program.close()

    def _hold(self, full: bool, behind: bool) -> None:
        before = self.paused
        self._full, self._behind = full, behind
        if self._source is not None and self.paused != before:
            (self._source.pause if self.paused else self._source.resume)()
