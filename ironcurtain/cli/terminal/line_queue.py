"""Lines from a pipe, each processed in turn."""

from __future__ import annotations

from collections import deque
from enum import Enum

from ironcurtain.cli.terminal.commands import ANSWERS, Input, parse
from ironcurtain.view.commands import Command


class Over(Enum):
    """The input ended, and all lines were processed."""

    OVER = 1


class LineQueue:
    """
    The lines that were not processed yet.

    The next message waits for the answer to the previous one; a decision waits for an escalation, or for the answer.
    """

    def __init__(self) -> None:
        self._lines: deque[tuple[Input, float]] = deque()
        self.began = 0.0
        """When the line was begun that :meth:`next` returned last."""
        self._ended = False

    def add(self, line: str, began: float, own: str = "") -> None:
        """
        Add a line.

        :param began: when its first character was typed; infinity if a program wrote it.
        :param own: what of it was typed.
        """
        if (parsed := parse(line, own)) is not None:
            self._lines.append((parsed, began))

    def end(self) -> None:
        """Mark the end of input."""
        self._ended = True

    def next(self, working: bool, waiting: bool) -> Input | Over | None:
        """
        :param working: whether a message is being processed.
        :param waiting: whether an escalation is pending.
        :returns: the next line to process, removed from the queue; ``None``: nothing yet.
        """
        if not self._lines:
            return Over.OVER if self._ended and not working else None
        first = self._lines[0][0]
        if working and not (waiting and isinstance(first, Command) and first.word in ANSWERS):
            return None
        line, self.began = self._lines.popleft()
        return line
