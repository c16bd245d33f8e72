"""Where a loop shows its output: in a terminal that can be viewed, or at its front end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ironcurtain.loop.backend import LoopStream
from ironcurtain.loop.output_scan import OutputScan
from ironcurtain.session.parts import Core
from ironcurtain.session.terminal import open_recording
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ProgramExit, sane_size
from ironcurtain.terminal.screen import Screens
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.text.display import one_line

SENTENCE = b"\r\x1b[K\x1b[2m[loop] %b\x1b[0m\r\n"
"""Prefix of the loop's own messages between the programs' output."""

SENTENCE_LIMIT = 500


class LoopFrontEnd(Protocol):
    """The command that started the loop."""

    def begin(self, hold: Callable[[bool], None]) -> None:
        """:param hold: called with whether to pause output."""

    def output(self, data: bytes) -> None:
        """Write standard output of a program that has no terminal."""

    def complained(self, data: bytes) -> None:
        """Write its standard error."""

    def say(self, text: str) -> None:
        """Write a message."""


class LogFrontEnd:
    """Nobody looks: what the loop says goes to the session's log, and each iteration keeps the end of its output."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def begin(self, hold: Callable[[bool], None]) -> None:
        """Output is never held up."""

    def output(self, data: bytes) -> None:
        """Leave it to the files of the iterations."""

    def complained(self, data: bytes) -> None:
        """Leave it to them, too."""

    def say(self, text: str) -> None:
        """Write a message to the log."""
        self._core.log_line("loop", text)


class StreamStage:
    """
    The stage without a terminal.

    :ivar reader: reader of the current iteration's output.
    """

    hub = None

    def __init__(self, front: LoopFrontEnd) -> None:
        self._front = front
        self.stream = LoopStream(lambda data: None, lambda columns, rows: None)
        self.reader: OutputScan | None = None
        self.size = sane_size(0, 0)
        self.output, self.piped, self.complained, self.say = front.output, front.output, front.complained, front.say
        front.begin(lambda full: (self.stream.pause if full else self.stream.resume)())

    def input_full(self, full: bool) -> None:
        """Ignored: there is no input."""

    def active(self) -> tuple[float, bool]:
        """:returns: the time of the last input: never; and whether output is held up."""
        return 0.0, self.stream.paused

    def mark(self, label: str) -> None:
        """Ignored: nothing is recorded."""

    def iteration_ended(self) -> None:
        """Nothing has to be restored."""
        self.stream.over()

    def close(self, status: int, reason: str) -> None:
        """The loop ended."""


class TerminalStage:
    """
    One terminal for all iterations.

    :param size: initial columns and rows.
    :raises OSError: the recording cannot be created.
    """

    def __init__(self, core: Core, reactor: Any, size: tuple[int, int], label: str) -> None:
        self.stream = LoopStream(self._typed, self._resized)
        self.reader: OutputScan | None = None
        services = core.services
        recording = open_recording(core.paths, services, size, label, self._echoes)
        screen = Screens(reactor).open(*size)
        self.hub: Hub = Hub(self.stream, services.clock, screen, size, recording=recording)
        self.output, self.input_full, self.mark = self.hub.received, self.hub.input_full, self.hub.mark

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self.hub.size

    def piped(self, data: bytes) -> None:
        """Write output of a program that has no terminal."""
        self.hub.received(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

    def complained(self, data: bytes) -> None:
        """Write its standard error."""
        self.piped(data)

    def say(self, text: str) -> None:
        """Write a message."""
        self.hub.received(SENTENCE % one_line(text, SENTENCE_LIMIT).encode("utf-8", "replace"))

    def active(self) -> tuple[float, bool]:
        """:returns: the time of the last input or output; and whether output is held up."""
        return self.hub.active if self.stream.listens else 0.0, self.stream.paused

    def iteration_ended(self) -> None:
        """Reset the terminal for the next program."""
        self.stream.over()
        self.hub.received(RESTORE)

    def close(self, status: int, reason: str) -> None:
        """The loop ended."""
        self.hub.ended(ProgramExit(status, reason))

    def _typed(self, data: bytes) -> None:
        if self.reader is not None:
            self.reader.typed(data)

    def _resized(self, columns: int, rows: int) -> None:
        if self.reader is not None:
            self.reader.resize(columns, rows)

    def _echoes(self) -> bool:
        return bool(getattr(self.stream.program, "echoes", False))
