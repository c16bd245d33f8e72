"""Lines from a pipe: each waits for its turn."""

from __future__ import annotations

from collections import deque
from enum import Enum

from ironcurtain.cli.terminal.commands import Decide, DenyAll, Input, Show, parse


class Over(Enum):
    """There is no more input, and nothing is left to do."""

    OVER = 1


class LineQueue:
    """
    The lines that came and were not acted on yet.

    The next message waits for the answer to the one before; a decision waits for an escalation, or for the answer.
    """

    def __init__(self) -> None:
        self._lines: deque[Input] = deque()
        self._ended = False

    def add(self, line: str) -> None:
        """A line came."""
        if (parsed := parse(line)) is not None:
            self._lines.append(parsed)

    def end(self) -> None:
        """No more lines come."""
        self._ended = True

    def next(self, working: bool, waiting: bool) -> Input | Over | None:
        """
        :param working: whether a message is being worked on.
        :param waiting: whether an escalation waits.
        :returns: what to do now, and takes it off the queue; ``None``: nothing yet.
        """
        if not self._lines:
            return Over.OVER if self._ended and not working else None
        if working and not (waiting and isinstance(self._lines[0], Decide | Show | DenyAll)):
            return None
        return self._lines.popleft()
