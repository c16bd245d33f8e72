"""The files of a loop: its prompt, the outcome of each iteration, and the events for the next one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import private_directory
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.loop.config import EventLoopSettings
from ironcurtain.loop.model import Iteration, LoopState
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Roots, open_regular, parent, require_regular
from ironcurtain.terminal.echo import LoopEvent
from ironcurtain.text.decoding import decode_anyhow

VERSION = 1
"""Format version of ``loop.json``; others are refused."""

PROMPT_LIMIT = 4 * 1024 * 1024
"""Maximum size in bytes of a prompt: more than any model accepts."""

TOLD_LIMIT = 32 * 1024
"""Maximum number of characters of events in the next prompt; the file has all of them."""


def read_prompt(text: str, path: Path, workspace: Path) -> str:
    """
    :param text: the text of the prompt, if given.
    :param path: its file otherwise. An agent can change files in the workspace, so links there are not followed, and
        only regular files are read.
    :raises UsageError: there is no prompt.
    """
    if text.strip():
        return text
    try:
        with os.fdopen(_open(path, workspace), "rb") as file:
            data = file.read(PROMPT_LIMIT + 1)
    except FileError as e:
        raise UsageError(f"no prompt: {e}. Write it there, or give --prompt TEXT") from None
    except OSError as e:
        raise UsageError(f"no prompt: {path}: {e.strerror}. Write it there, or give --prompt TEXT") from None
    if len(data) > PROMPT_LIMIT:
        raise UsageError(f"the prompt in {path} is larger than {PROMPT_LIMIT} bytes")
    if not data.strip():
        raise UsageError(f"the prompt in {path} is empty")
    return decode_anyhow(data)


def prompt_of(settings: EventLoopSettings, workspace: Path) -> str:
    """
    :returns: the prompt of the next iteration.
    :raises UsageError: there is none.
    """
    return read_prompt(settings.prompt, workspace / Path(settings.prompt_file), workspace)


def with_events(prompt: str, events: Sequence[LoopEvent]) -> str:
    """:returns: a prompt with the events of the previous iteration at its end."""
    if not events:
        return prompt
    lines: list[str] = []
    size = 0
    for number, event in enumerate(events):
        size += len(event.topic) + len(event.payload)
        if size > TOLD_LIMIT:
            lines.append(f"(and {len(events) - number} more, too long to repeat here)")
            break
        lines.append(f"- {event.topic}: {event.payload}")
    return "\n".join([prompt.rstrip(), "", "Events of the previous iteration:", "", *lines, ""])


def _open(path: Path, workspace: Path) -> int:
    roots = Roots([os.fspath(workspace)])
    try:
        try:
            place = roots.locate(os.fspath(path))
        except FileError:  # elsewhere, links are followed: the user named the path
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            try:
                require_regular(os.fstat(descriptor), os.fspath(path))
            except FileError:
                os.close(descriptor)
                raise
            return descriptor
        with parent(place) as (directory, _name):
            return open_regular(directory, place, os.O_RDONLY)
    finally:
        roots.close()


def read_state(path: Path) -> LoopState:
    """
    :returns: the state of a loop; a new one if there is no file.
    :raises ConfigurationError: the file is damaged.
    """
    try:
        state = msgspec.json.decode(path.read_bytes(), type=LoopState)
    except FileNotFoundError:
        return LoopState()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise ConfigurationError(str(path), f"is damaged: {e}") from None
    if state.version != VERSION:
        raise ConfigurationError(str(path), f"has version {state.version}, not {VERSION}")
    return state


class Journal:
    """
    Keeps the state in memory and on disk.

    :param paths: paths of the session.
    """

    def __init__(self, paths: SessionPaths) -> None:
        self._paths = paths
        self.state = read_state(paths.loop)

    def open(self) -> None:
        """Create the directory for the output of iterations."""
        private_directory(self._paths.iterations)
        self._write(msgspec.structs.replace(self.state, ending="", reason=""))

    @property
    def prompt_file(self) -> Path:
        """The prompt of the current iteration."""
        return self._paths.iterations / "prompt.md"

    @property
    def events_file(self) -> Path:
        """The events of the previous iteration, one JSON object per line."""
        return self._paths.iterations / "events.jsonl"

    def begin(self, iteration: Iteration, prompt: str) -> None:
        """An iteration starts. This is recorded before it runs."""
        lines = [msgspec.json.encode(event) + b"\n" for event in self.state.events]
        write_atomically(self.events_file, b"".join(lines))
        write_atomically(self.prompt_file, prompt.encode("utf-8", "replace"))
        self._put(iteration, self.state.events)

    def end(self, iteration: Iteration, events: Sequence[LoopEvent], text: str) -> None:
        """
        An iteration ended.

        :param text: the end of its output.
        """
        write_atomically(self._paths.iterations / f"{iteration.number:04}.txt", text.encode("utf-8", "replace") + b"\n")
        self._put(iteration, tuple(events))

    def over(self, ending: str, reason: str) -> None:
        """The loop ended."""
        self._write(msgspec.structs.replace(self.state, ending=ending, reason=reason))

    def _put(self, iteration: Iteration, events: tuple[LoopEvent, ...]) -> None:
        before = tuple(other for other in self.state.iterations if other.number != iteration.number)
        self._write(msgspec.structs.replace(self.state, iterations=(*before, iteration), events=events))

    def _write(self, state: LoopState) -> None:
        self.state = state
        write_atomically(self._paths.loop, msgspec.json.encode(state) + b"\n")
