"""Commands of this machine as a backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironcurtain.loop.backend import Owner, Running, Task
from ironcurtain.loop.backends import known, prepare
from ironcurtain.loop.mode import Mode
from ironcurtain.loop.pipes import PipedCommand
from ironcurtain.terminal.pty import LocalPty, find_program

_NO_INPUT = ("/bin/sh", "-c", 'exec "$@" </dev/null', "sh")
"""Runs a command in its terminal, with its standard input at the end."""


class HostBackend:
    """
    :param backend: the name of a known one.
    :param command: in place of it; may be empty.
    :param environ: of the commands.
    :param directory: where they run.
    """

    def __init__(
        self, reactor: Any, backend: str, command: tuple[str, ...], environ: Mapping[str, str], directory: str
    ) -> None:
        self._reactor, self._backend, self._command = reactor, backend, command
        self._environ, self._directory = environ, directory

    @property
    def name(self) -> str:
        """For people."""
        return self._command[0] if self._command else self._backend

    where = "on this machine, with all that you may do"

    def shown(self, mode: Mode) -> tuple[str, ...]:
        """:returns: the command without its prompt."""
        return self._command or known(self._backend, mode)

    def check(self, mode: Mode) -> None:
        """:raises NotFound: there is no such command."""
        find_program(self.shown(mode)[0], self._environ, self._directory)

    async def start(self) -> None:
        """Nothing is needed."""

    async def stop(self) -> None:
        """Nothing is left."""

    async def run(self, task: Task, owner: Owner) -> Running:
        """Start the command."""
        prepared = prepare(self.shown(task.mode), task.mode, task.prompt)
        environ = {**self._environ, **task.environ}
        if not task.in_terminal:
            command = PipedCommand(self._reactor, self._reactor)
            command.owner = owner
            command.spawn(prepared.argv, environ, self._directory, prepared.stdin)
            task.stream.begin(command)
            return command
        pty = LocalPty(self._reactor, self._reactor)
        pty.owner = owner
        argv = prepared.argv if task.mode is Mode.INTERACTIVE else (*_NO_INPUT, *prepared.argv)
        pty.spawn(argv, environ, self._directory, *task.size)
        task.stream.begin(pty, pty)
        return pty

    def cost(self) -> float | None:
        """:returns: nobody knows."""
        return None
