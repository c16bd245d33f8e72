"""What an iteration runs, whatever that is: what it is given, what is heard of it, and its way to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.defer import Deferred

from ironcurtain.loop.model import IterationMode
from ironcurtain.terminal.model import ProgramExit, ProgramStream


class PausableOutput(Protocol):
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
        self._source: PausableOutput | None = None
        self._full = self._behind = False
        self.program: ProgramStream | None = None
        self.listens = True

    @property
    def paused(self) -> bool:
        """Whether no more output is to come for now."""
        return self._full or self._behind

    def begin(self, source: PausableOutput, program: ProgramStream | None = None) -> None:
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


class RunningProgram(Protocol):
    """A program that runs."""

    @property
    def done(self) -> Deferred[ProgramExit]:
        """Fires when it has ended, and all that it wrote was given away."""

    def stop(self) -> None:
        """Ask it to end; after a grace, end it."""

    def kill(self) -> None:
        """End it at once."""


class OutputHandler:
    """
    Who hears from the program.

    :param received: gets its output.
    :param complained: gets its error output, where that is apart.
    :param input_full: hears whether it reads nothing of what is typed.
    """

    def __init__(
        self,
        received: Callable[[bytes], None],
        complained: Callable[[bytes], None],
        input_full: Callable[[bool], None] = lambda full: None,
    ) -> None:
        self.received, self.complained, self.input_full = received, complained, input_full

    def ended(self, ended: ProgramExit) -> None:
        """A terminal says so; :attr:`RunningProgram.done` does as well."""


@dataclass(frozen=True, slots=True)
class IterationTask:
    """
    One iteration's.

    :param environ: what it finds in its environment besides.
    :param size: columns and rows of its terminal.
    :param stream: leads from the terminal's viewers to it.
    """

    prompt: str
    mode: IterationMode
    environ: Mapping[str, str]
    size: tuple[int, int]
    stream: LoopStream

    @property
    def in_terminal(self) -> bool:
        """Whether it has one."""
        return self.mode is not IterationMode.HEADLESS


class LoopBackend(Protocol):
    """Makes a program for each iteration."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def where(self) -> str:
        """Where it runs, in words."""

    def shown(self, mode: IterationMode) -> tuple[str, ...]:
        """:returns: the command without its prompt, for the record."""

    def check(self, mode: IterationMode) -> None:
        """:raises IronCurtainError: it cannot be run here."""

    async def start(self) -> None:
        """The loop begins."""

    async def stop(self) -> None:
        """It is over."""

    async def run(self, task: IterationTask, owner: OutputHandler) -> RunningProgram:
        """
        Start one.

        :raises NoPty: there is no terminal for it.
        :raises IronCurtainError: it does not start.
        """

    def cost(self) -> float | None:
        """:returns: what the last one used, in US dollars; ``None``: nobody knows."""
