"""What an agent needs of the place where its programs run, whatever kind that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from twisted.internet.defer import Deferred

from ironcurtain.container.container import ProgramEnded
from ironcurtain.container.execution import Sink
from ironcurtain.container.inside import ProbeFinding


class Program(Protocol):
    """A program whose input is open."""

    @property
    def ended(self) -> Deferred[ProgramEnded]:
        """
        Fires with the program's end, after the last output; fails with
        :class:`~ironcurtain.container.errors.ContainerDied` if its sandbox ends.
        """

    def write(self, data: bytes) -> None:
        """Give it input. Nothing happens if it has ended."""

    def close_input(self) -> None:
        """End its input, after what was written."""

    async def end(self) -> None:
        """End it and what it started: SIGTERM, a few seconds, SIGKILL."""


class AgentSandbox(Protocol):
    """Where an agent's programs run: one at a time, and what they leave running stays."""

    @property
    def id(self) -> str:
        """What it is called in records, once it is created."""

    @property
    def name(self) -> str:
        """What it is called by those who look for it."""

    @property
    def most_processes(self) -> int:
        """Maximum number of its processes and threads."""

    async def start(self) -> tuple[ProbeFinding, ...]:
        """
        Create, start and probe it. If that fails or is cancelled, nothing is left of it.

        :returns: the findings of the probe, for the record.
        :raises ProbeFailed: it is not confined as specified.
        :raises ContainerDied: it ended at once.
        """

    async def run(
        self, argv: Sequence[str], *, stdin: bytes, stdout: Sink, stderr: Sink, environment: Mapping[str, str]
    ) -> ProgramEnded:
        """
        Run a program until it ends. If this is cancelled, everything that was started is ended first.

        :param argv: an absolute path, or a name that is looked up in the sandbox's ``PATH``.
        :param stdin: all of its input; empty: it has none.
        :param environment: besides what the sandbox has.
        :raises ContainerDied: the sandbox ended meanwhile.
        """

    async def open(self, argv: Sequence[str], *, stdout: Sink, stderr: Sink, environment: Mapping[str, str]) -> Program:
        """
        Start a program whose input is open. The parameters are those of :meth:`run`.

        :raises ContainerDied: the sandbox ended meanwhile.
        """

    async def crowded(self) -> bool:
        """:returns: whether its number of processes and threads is close to the limit."""

    async def end_programs(self) -> bool:
        """
        End everything in it except what keeps it up.

        :returns: whether it is still up.
        """

    async def stop(self) -> None:
        """End it with everything in it, and remove it. Can be called if it has ended or is gone."""
