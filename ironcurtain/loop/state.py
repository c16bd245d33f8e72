"""The loop on disk: what became of each iteration, and what the next one is told. Pure, but for its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import SessionPaths, private_directory
from ironcurtain.loop.echo import Event
from ironcurtain.loop.model import Iteration, LoopState

VERSION = 1
"""Of ``loop.json``; others are refused."""


def read_state(path: Path) -> LoopState:
    """
    :returns: how far a loop has come; a new one if there is no file.
    :raises ConfigurationError: the file is damaged.
    """
    try:
        state = msgspec.json.decode(path.read_bytes(), type=LoopState)
    except FileNotFoundError:
        return LoopState()
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise ConfigurationError(str(path), f"is damaged: {e}") from None
    if state.version != VERSION:
        raise ConfigurationError(str(path), f"is of version {state.version}, not {VERSION}")
    return state


class Journal:
    """
    Keeps the state, in memory and on disk.

    :param paths: of the session.
    """

    def __init__(self, paths: SessionPaths) -> None:
        self._paths = paths
        self.state = read_state(paths.loop)

    def open(self) -> None:
        """Make the directory for what iterations said."""
        private_directory(self._paths.iterations)
        self._write(msgspec.structs.replace(self.state, ending="", reason=""))

    @property
    def prompt_file(self) -> Path:
        """What the iteration that runs was told."""
        return self._paths.iterations / "prompt.md"

    @property
    def events_file(self) -> Path:
        """The events of the iteration before, one JSON object a line."""
        return self._paths.iterations / "events.jsonl"

    def begin(self, iteration: Iteration, prompt: str) -> None:
        """An iteration starts; whatever happens from now on, it is known that it did."""
        lines = [msgspec.json.encode(event) + b"\n" for event in self.state.events]
        write_atomically(self.events_file, b"".join(lines))
        write_atomically(self.prompt_file, prompt.encode("utf-8", "replace"))
        self._put(iteration, self.state.events)

    def end(self, iteration: Iteration, events: Sequence[Event], text: str) -> None:
        """
        An iteration ended.

        :param text: the last of what it showed.
        """
        write_atomically(self._paths.iterations / f"{iteration.number:04}.txt", text.encode("utf-8", "replace") + b"\n")
        self._put(iteration, tuple(events))

    def over(self, ending: str, reason: str) -> None:
        """The loop ended."""
        self._write(msgspec.structs.replace(self.state, ending=ending, reason=reason))

    def _put(self, iteration: Iteration, events: tuple[Event, ...]) -> None:
        before = tuple(other for other in self.state.iterations if other.number != iteration.number)
        self._write(msgspec.structs.replace(self.state, iterations=(*before, iteration), events=events))

    def _write(self, state: LoopState) -> None:
        self.state = state
        write_atomically(self._paths.loop, msgspec.json.encode(state) + b"\n")
