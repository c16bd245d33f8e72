"""The terminal of a loop: one for all iterations, whichever program has it just then."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.terminal.model import Stream


class LoopStream:
    """
    Passes on to the program that runs now, if one runs, what its viewers do.

    :param typed: hears what is typed to the program.
    :param resized: hears of sizes.
    :ivar program: the one that runs.
    :ivar listens: whether it gets what is typed.
    """

    def __init__(self, typed: Callable[[bytes], None], resized: Callable[[int, int], None]) -> None:
        self._typed, self._resized = typed, resized
        self.program: Stream | None = None
        self.listens = True
        self.paused = False

    def write(self, data: bytes) -> None:
        """What is typed."""
        if self.program is not None and self.listens:
            self._typed(data)
            self.program.write(data)

    def pause(self) -> None:
        """Give no more output for now."""
        self.paused = True
        if self.program is not None:
            self.program.pause()

    def resume(self) -> None:
        """Give output again."""
        self.paused = False
        if self.program is not None:
            self.program.resume()

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has this size now."""
        if self.program is not None:
            self.program.resize(columns, rows)
        self._resized(columns, rows)

    def close(self) -> None:
        """Nobody reads it any more."""
        if self.program is not None:
            self.program.close()
