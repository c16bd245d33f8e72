"""
Commands of this machine as a backend: the known ones, how they get the prompt, and how they run without a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.loop.backend import IterationTask, OutputHandler, RunningProgram
from ironcurtain.loop.model import IterationMode
from ironcurtain.process.piped import PipedCommand
from ironcurtain.process.programs import find_program
from ironcurtain.terminal.pty import LocalPty, how

PROMPT = "{prompt}"
"""Placeholder for the prompt in a command; without it, see :func:`prepare`."""

ARGUMENT_LIMIT = 128 * 1024 - 1
"""Maximum size in bytes of one argument (Linux: MAX_ARG_STRLEN, including the NUL)."""

BACKENDS: Mapping[str, Mapping[IterationMode, tuple[str, ...]]] = {
    "claude": {
        IterationMode.HEADLESS: ("claude", "--dangerously-skip-permissions", "--print"),
        IterationMode.INTERACTIVE: ("claude", "--", PROMPT),
        IterationMode.OBSERVE: ("claude", "--dangerously-skip-permissions", "--print", "--", PROMPT),
    },
    "codex": {
        IterationMode.HEADLESS: (
            "codex",
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "-",
        ),
        IterationMode.INTERACTIVE: ("codex", "--", PROMPT),
        IterationMode.OBSERVE: (
            *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("--", PROMPT),
        ),
    },
    "gemini": {
        IterationMode.HEADLESS: ("gemini", "--yolo"),
        IterationMode.INTERACTIVE: ("gemini", f"--prompt-interactive={PROMPT}"),
        IterationMode.OBSERVE: ("gemini", "--yolo", f"--prompt={PROMPT}"),
    },
    "opencode": {
        IterationMode.HEADLESS: ("opencode", "run"),
        IterationMode.INTERACTIVE: ("opencode", f"--prompt={PROMPT}"),
        IterationMode.OBSERVE: ("opencode", "run", "--", PROMPT),
    },
}
"""The known commands. Without an interactive terminal, they get options that disable questions."""


class PreparedCommand(msgspec.Struct, frozen=True):
    """
    A command with its prompt.

    :param stdin: data for its standard input, if that is a pipe.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""


def known_command(backend: str, mode: IterationMode) -> tuple[str, ...]:
    """
    :returns: the command of a known backend.
    :raises UsageError: it is not known.
    """
    if backend not in BACKENDS:
        raise UsageError(f"there is no backend {backend!r}: choose one of {', '.join(BACKENDS)}, or give a command")
    return BACKENDS[backend][mode]


def prepare(command: Sequence[str], mode: IterationMode, prompt: str) -> PreparedCommand:
    """
    Insert the prompt into a command: in place of ``{prompt}``; else on standard input, and in a terminal as the last
    argument.

    :raises UsageError: the prompt cannot be an argument.
    """
    if not any(PROMPT in word for word in command):
        if mode is IterationMode.HEADLESS:
            return PreparedCommand(tuple(command), prompt.encode("utf-8", "replace"))
        command = (*command, PROMPT)
    if "\0" in prompt or len(prompt.encode("utf-8", "replace")) > ARGUMENT_LIMIT:
        raise UsageError(
            "the prompt is too long for an argument, or contains a NUL byte: move its text to a file, or use --no-pty"
        )
    return PreparedCommand(tuple(word.replace(PROMPT, prompt) for word in command))


_NO_INPUT = ("/bin/sh", "-c", 'exec "$@" </dev/null', "sh")
"""Runs a command in its terminal, with empty standard input."""


class HostBackend:
    """
    :param backend: name of a known command.
    :param command: used instead of it; may be empty.
    :param environ: environment of the commands.
    :param directory: where they run.
    """

    def __init__(
        self, reactor: Any, backend: str, command: tuple[str, ...], environ: Mapping[str, str], directory: str
    ) -> None:
        self._reactor, self._backend, self._command = reactor, backend, command
        self._environ, self._directory = environ, directory

    @property
    def name(self) -> str:
        """Its name, for people."""
        return self._command[0] if self._command else self._backend

    where = "on this machine, with all your rights"

    def shown(self, mode: IterationMode) -> tuple[str, ...]:
        """:returns: the command without its prompt."""
        return self._command or known_command(self._backend, mode)

    def check(self, mode: IterationMode) -> None:
        """:raises NotFound: there is no such command."""
        find_program(self.shown(mode)[0], self._environ, self._directory)

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""

    async def run(self, task: IterationTask, owner: OutputHandler) -> RunningProgram:
        """Start the command."""
        prepared = prepare(self.shown(task.mode), task.mode, task.prompt)
        environ = {**self._environ, **task.environ}
        if not task.in_terminal:
            program = find_program(prepared.argv[0], environ, self._directory)
            command = PipedCommand(self._reactor, self._reactor, how, owner.received, owner.complained)
            command.spawn((program, *prepared.argv[1:]), environ, self._directory, prepared.stdin)
            task.stream.begin(command)
            return command
        pty = LocalPty(self._reactor, self._reactor)
        pty.owner = owner
        argv = prepared.argv if task.mode is IterationMode.INTERACTIVE else (*_NO_INPUT, *prepared.argv)
        pty.spawn(argv, environ, self._directory, *task.size)
        task.stream.begin(pty, pty)
        return pty

    def cost(self) -> float | None:
        """:returns: ``None``: unknown."""
        return None

    def limit_ends(self) -> float | None:
        """:returns: ``None``: unknown."""
        return None
