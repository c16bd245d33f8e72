"""What is known of all that has passed between a terminal and a shell: marks, instructions, keys typed ahead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ironcurtain.shell_integration.fallback import FallbackInput, FallbackPrefix
from ironcurtain.shell_integration.marks import MarkReader

AHEAD_LIMIT = 4096
"""Most bytes of a line that was typed ahead, and is typed again."""


@dataclass(slots=True)
class ShellStreams:
    """
    :ivar reader: of the marks in all output so far.
    :ivar fallback: of instructions in all keys so far, for a shell without marks.
    :ivar ahead: what was typed after the last Enter, with the keys that edited it, as far as is known.
    :ivar entered: whether Enter was pressed.
    """

    reader: MarkReader
    fallback: FallbackPrefix = field(default_factory=FallbackPrefix)
    ahead: bytes = b""
    entered: bool = False

    def typed(self, keys: bytes, integrated: bool, in_foreground: Callable[[], bool]) -> FallbackInput:
        """
        :param integrated: whether the shell has marks, and says itself what is an instruction.
        :param in_foreground: returns whether the shell itself has its terminal, and not a job.
        :returns: what the shell gets of the keys, and the instructions among them.
        """
        if integrated:
            typed = FallbackInput(keys, b"", ())
        else:  # an editor that has replaced the shell has the alternate screen
            typed = self.fallback.feed(keys, in_foreground() and not self.reader.alternate)
        self.entered |= b"\r" in typed.forwarded
        line = (self.ahead + typed.forwarded).replace(b"\n", b"\r").rpartition(b"\r")[2]
        self.ahead = line[: AHEAD_LIMIT + 1]  # of a longer one it matters only that it is
        return typed
