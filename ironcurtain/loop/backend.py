"""What an iteration runs, whatever that is: what it is given, and what is heard of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from twisted.internet.defer import Deferred

from ironcurtain.loop.mode import Mode
from ironcurtain.loop.stream import LoopStream
from ironcurtain.terminal.model import Ended


class Running(Protocol):
    """A program that runs."""

    @property
    def done(self) -> Deferred[Ended]:
        """Fires when it has ended, and all that it wrote was given away."""

    def stop(self) -> None:
        """Ask it to end; after a grace, end it."""

    def kill(self) -> None:
        """End it at once."""


class Owner:
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

    def ended(self, ended: Ended) -> None:
        """A terminal says so; :attr:`Running.done` does as well."""


@dataclass(frozen=True, slots=True)
class Task:
    """
    One iteration's.

    :param environ: what it finds in its environment besides.
    :param size: columns and rows of its terminal.
    :param stream: leads from the terminal's viewers to it.
    """

    prompt: str
    mode: Mode
    environ: Mapping[str, str]
    size: tuple[int, int]
    stream: LoopStream

    @property
    def in_terminal(self) -> bool:
        """Whether it has one."""
        return self.mode is not Mode.HEADLESS


class Backend(Protocol):
    """Makes a program for each iteration."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def where(self) -> str:
        """Where it runs, in words."""

    def shown(self, mode: Mode) -> tuple[str, ...]:
        """:returns: the command without its prompt, for the record."""

    def check(self, mode: Mode) -> None:
        """:raises IronCurtainError: it cannot be run here."""

    async def start(self) -> None:
        """The loop begins."""

    async def stop(self) -> None:
        """It is over."""

    async def run(self, task: Task, owner: Owner) -> Running:
        """
        Start one.

        :raises NoPty: there is no terminal for it.
        :raises IronCurtainError: it does not start.
        """

    def cost(self) -> float | None:
        """:returns: what the last one used, in US dollars; ``None``: nobody knows."""
