"""The user's editor, in which a command of the agent is changed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from ironcurtain.errors import ConfigurationError, IronCurtainError
from ironcurtain.process.search_path import host_environment
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ProgramExit
from ironcurtain.text.decoding import decode_text


class Editor:
    """
    The user's editor in the same terminal.

    :param done: gets the command, ``None`` if it is to stay as it is, and what went wrong.
    """

    def __init__(self, agent: ShellAgent, hub: Hub, done: Callable[[str | None, str], None]) -> None:
        self._hub, self._done = hub, done
        self._file: Path = agent.directory / "command.sh"
        self._pty = agent.new_pty()

    def begin(self, command: str) -> None:
        """Open it."""
        environ = host_environment(os.environ)
        words = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "vi")
        self._file.unlink(missing_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(command + "\n")
        self._pty.owner = self
        try:
            self._pty.spawn([*words, str(self._file)], environ, str(self._file.parent), *self._hub.size)
        except IronCurtainError as e:
            self._done(None, f"no editor: {e}; set EDITOR")

    def write(self, data: bytes) -> None:
        """Keys."""
        self._pty.write(data)

    def resize(self, columns: int, rows: int) -> None:
        """The terminal has another size."""
        self._pty.resize(columns, rows)

    def received(self, data: bytes) -> None:
        """For the terminal."""
        self._hub.received(data)

    def input_full(self, full: bool) -> None:
        """For the terminal."""

    def ended(self, ended: ProgramExit) -> None:
        """For the terminal: read what was written."""
        try:
            text = decode_text("it", self._file.read_bytes()).strip()
            self._file.unlink()
        except (OSError, ConfigurationError) as e:
            self._done(None, f"the command cannot be read: {e}")
            return
        self._done(text if text and ended.status == 0 else None, "")
