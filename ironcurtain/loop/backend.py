"""The backend of an iteration: its task, its program, its output, and its connection to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.loop.model import IterationMode
from ironcurtain.terminal.model import ProgramExit, ProgramStream


class PausableOutput(Protocol):
    """A source of output that can be paused."""

    def pause(self) -> None:
        """Pause output."""

    def resume(self) -> None:
        """Resume output."""


class LoopStream:
    """
    Passes the viewers' input to the program of the current iteration, if there is one.

    :param typed: called with input for the program.
    :param resized: called with new sizes.
    :ivar program: the current program, if it has a terminal.
    :ivar listens: whether it gets input.
    """

    def __init__(self, typed: Callable[[bytes], None], resized: Callable[[int, int], None]) -> None:
        self._typed, self._resized = typed, resized
        self._source: PausableOutput | None = None
        self._full = self._behind = False
        self.program: ProgramStream | None = None
        self.listens = True

    @property
    def paused(self) -> bool:
        """Whether output is paused."""
        return self._full or self._behind

    def begin(self, source: PausableOutput, program: ProgramStream | None = None) -> None:
        """A program started."""
        self._source, self.program = source, program
        if self.paused:
            source.pause()

    def over(self) -> None:
        """The program ended."""
        self._source = self.program = None

    def write(self, data: bytes) -> None:
        """Send input."""
        if self.program is not None and self.listens:
            self.program.write(data)  # first, since a person waits for it
            self._typed(data)

    def pause(self) -> None:
        """The viewers cannot take more output."""
        self._hold(True, self._behind)

    def resume(self) -> None:
        """The viewers can take more output."""
        self._hold(False, self._behind)

    def hold_back(self, behind: bool) -> None:
        """:param behind: whether the reader of the output is too slow."""
        self._hold(self._full, behind)

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        if self.program is not None:
            self.program.resize(columns, rows)
        self._resized(columns, rows)

    def close(self) -> None:
        """Discard further output."""
        if self.program is not None:
            self.program.close()

    def _hold(self, full: bool, behind: bool) -> None:
        before = self.paused
        self._full, self._behind = full, behind
        if self._source is not None and self.paused != before:
            (self._source.pause if self.paused else self._source.resume)()


class RunningProgram(Protocol):
    """A running program."""

    @property
    def done(self) -> Deferred[ProgramExit]:
        """Fires when it has ended, and all its output was delivered."""

    def stop(self) -> None:
        """Ask it to end; after a grace period, kill it."""

    def kill(self) -> None:
        """Kill it."""


class OutputHandler:
    """
    Receives the program's output and end.

    :param received: called with its output.
    :param complained: called with its standard error, if that is separate.
    :param input_full: called with whether it does not read its input.
    """

    def __init__(
        self,
        received: Callable[[bytes], None],
        complained: Callable[[bytes], None],
        input_full: Callable[[bool], None] = lambda full: None,
    ) -> None:
        self.received, self.complained, self.input_full = received, complained, input_full

    def ended(self, ended: ProgramExit) -> None:
        """For a terminal; :attr:`RunningProgram.done` also fires."""


class IterationTask(msgspec.Struct, frozen=True):
    """
    The task of one iteration.

    :param environ: additional environment variables.
    :param size: columns and rows of its terminal.
    :param stream: connects the terminal's viewers to it.
    """

    prompt: str
    mode: IterationMode
    environ: Mapping[str, str]
    size: tuple[int, int]
    stream: LoopStream

    @property
    def in_terminal(self) -> bool:
        """Whether it has a terminal."""
        return self.mode is not IterationMode.HEADLESS


class LoopBackend(Protocol):
    """Creates a program for each iteration."""

    @property
    def name(self) -> str:
        """Its name, for people."""

    @property
    def where(self) -> str:
        """Where it runs, in words."""

    def shown(self, mode: IterationMode) -> tuple[str, ...]:
        """:returns: the command without its prompt, for the record."""

    async def start(self) -> None:
        """The loop starts."""

    async def stop(self) -> None:
        """The loop ended."""

    async def run(self, task: IterationTask, owner: OutputHandler) -> RunningProgram:
        """
        Start a program.

        :raises NoPty: there is no terminal for it.
        :raises IronCurtainError: it cannot be started.
        """

    def cost(self) -> float | None:
        """:returns: the cost of the last program in US dollars; ``None``: unknown."""

    def limit_ends(self) -> float | None:
        """
        :returns: when a limit of the account that pays for the model ends, in seconds on the clock, if the loop shall
            wait for that and it ended the last program.
        """
